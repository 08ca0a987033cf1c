#!/usr/bin/env python3
"""check_search.py NAMES INDEX: whether the search finds each public name of the reference under a heading of its own."""
import html
import json
import pathlib
import re
import sys

names = pathlib.Path(sys.argv[1]).read_text().splitlines()
index = json.loads(pathlib.Path(sys.argv[2]).read_text())
headings = {html.unescape(re.sub(r"<[^>]*>", "", entry["title"])) for entry in index["docs"] if entry["location"].startswith("reference/")}
missing = [name for name in names if name not in headings]
print(*(f"the search does not find {name}" for name in missing), sep="\n", end="\n" if missing else "")
print(f"{len(names) - len(missing)} of {len(names)} public names are found by the search")
sys.exit(bool(missing) or not names)
