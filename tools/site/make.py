#!/usr/bin/env python3
"""make.py ROOT WORK: the pages of the site, in Markdown, in WORK/docs, and WORK/mkdocs.yml.

The book, the notes and the examples are as they stand in the tree; what they link to beyond that becomes a page that shows
the file. The reference has a page for each public header: the header's own text, and its public names, each with its
declaration and the text above it. Doxygen finds the names; their text is taken from the header, since its layout has a meaning.

Fails for a public header that no sentence introduces, for a public name at namespace scope that no text stands above, and for a
public member function without one, since the page would leave it out. No text is asked of special members and operators, of what
overrides a function that has one, of begin(), end(), data(), size(), empty(), front(), back() and swap(), which mean what they mean
in the standard library, of what select asks its cases, and of classes that no text stands above: awaiters.
"""
import json
import os
import pathlib
import posixpath
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT, WORK = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
DOCS = WORK / "docs"
SHOWN_AS = {".cpp": "cpp", ".hpp": "cpp", ".py": "python", ".txt": "text", ".json": "json", "": "bash"}


# ---- the text above a declaration ------------------------------------------------------------------------------------


def escaped(text):
    """Plain prose as Markdown: what is between backquotes stays."""
    parts = re.split(r"(`[^`]*`)", text)
    plain = {"<": "&lt;", ">": "&gt;"}
    return "".join(part if part.startswith("`") else re.sub(r"[<>*_|\[\]]", lambda one: plain.get(one[0], "\\" + one[0]), part)
                   for part in parts)


def as_markdown(lines):
    """Paragraphs; code, which is indented by four; and entries such as `Cancel    has no effect`, whose lines are indented as far."""
    out, at = [], 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            code = []
            while at < len(lines) and (lines[at].startswith("    ") or not lines[at].strip()):
                code.append(lines[at][4:])
                at += 1
            while code and not code[-1].strip():
                code.pop()
            out += ["", "```cpp", *code, "```", ""]
            continue
        entry = re.match(r"( *)([A-Z][a-z]+(?: [a-z]+)?)(  +)(\S.*)", line)
        if entry:
            wide = len(entry[1]) + min(len(entry[2]) + len(entry[3]), 4)
            text = [entry[4]]
            at += 1
            while at < len(lines) and lines[at].startswith(" " * wide) and lines[at].strip():
                text.append(lines[at].strip())
                at += 1
            out += ["", f"**{entry[2]}**", f":   {escaped(' '.join(text))}", ""]
            continue
        out.append(escaped(line))
        at += 1
    return "\n".join(out).strip()


class header:
    """The blocks of one header: a text, and the lines of what it is about, which end at an empty line or the next text."""

    def __init__(self, path):
        self.path = path
        self.lines = (ROOT / path).read_text().splitlines()
        intro = []
        for line in self.lines:
            if not line.startswith("//"):
                break
            intro.append(re.sub(r"^// ?", "", line))
        # That a file is long is for those who change it.
        for at, line in enumerate(intro):
            if line.startswith("Long because"):
                del intro[at:]
                break
        self.intro = intro
        self.text_of = {}  # by line, from 1
        at = 0
        while at < len(self.lines):
            if not self.lines[at].lstrip().startswith("///"):
                beside = re.search(r"///< ?(.*)", self.lines[at])
                if beside and at + 1 not in self.text_of:
                    text = [beside[1]]
                    while at + 1 < len(self.lines) and re.match(r"\s*///< ", self.lines[at + 1]):
                        at += 1
                        text.append(self.lines[at].split("///<", 1)[1].strip())
                    self.text_of[at + 2 - len(text)] = text
                at += 1
                continue
            text = []
            while at < len(self.lines) and self.lines[at].lstrip().startswith("///"):
                text.append(re.sub(r"^\s*/// ?", "", self.lines[at]))
                at += 1
            # What has a body ends with it: its members have texts of their own.
            deep = 0
            while at < len(self.lines):
                line = self.lines[at]
                if deep == 0 and (not line.strip() or line.lstrip().startswith("///")):
                    break
                self.text_of.setdefault(at + 1, text)
                if re.match(r"\s*(template <.*> *)?(class|struct|union)\b[^;]*\{$", line) or line.strip() in ("public:", "private:"):
                    at += 1
                    break
                code = re.sub(r"//.*|\"(\\.|[^\"])*\"", "", line)
                deep += code.count("{") - code.count("}")
                at += 1


# ---- names, by doxygen -----------------------------------------------------------------------------------------------


def text_in(element):
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip() if element is not None else ""


def template_of(element):
    parameters = element.find("templateparamlist")
    if parameters is None:
        return ""
    each = []
    for one in parameters.findall("param"):
        words = [text_in(one.find("type")), text_in(one.find("declname"))]
        default = text_in(one.find("defval"))
        each.append(" ".join(word for word in words if word) + (f" = {default}" if default else ""))
    return f"template <{', '.join(each)}>\n"


def place_of(element):
    at = element.find("location")
    if at is None:
        return None, 0
    declared = at.get("declfile"), at.get("declline")
    file, line = declared if declared[1] else (at.get("file"), at.get("line"))
    found = re.search(r"include/weft/[^/]*\.hpp$", file)
    return (found[0] if found else None), int(line)


def public_names(work):
    configuration = {
        "INPUT": ROOT / "include/weft", "FILE_PATTERNS": "*.hpp", "RECURSIVE": "NO", "STRIP_FROM_PATH": ROOT,
        "OUTPUT_DIRECTORY": work, "GENERATE_XML": "YES", "GENERATE_HTML": "NO", "GENERATE_LATEX": "NO",
        "XML_PROGRAMLISTING": "NO", "EXTRACT_ALL": "YES", "QUIET": "YES", "WARNINGS": "NO", "HAVE_DOT": "NO",
        "MARKDOWN_SUPPORT": "NO", "MACRO_EXPANSION": "YES", "EXPAND_ONLY_PREDEF": "YES", "SEARCH_INCLUDES": "NO",
        "EXCLUDE_SYMBOLS": "weft::detail weft::detail::* weft::*::detail weft::interop std asio boost",
        "PREDEFINED": "WEFT_COROUTINE_TAKES_OVER= WEFT_COROUTINE_WRAPPER= WEFT_COROUTINE_TYPE= WEFT_TO_BE_AWAITED(x)= WEFT_ELIDABLE= "
                      "WEFT_ELIDABLE_ARGUMENT= WEFT_ALWAYS_INLINE=inline WEFT_LAYOUT_IN(...)= WEFT_PER_AWAIT= "
                      "WEFT_ROOT_IN(...)= WEFT_LAYOUT(...)= WEFT_CASE_LAYOUT(...)= WEFT_CASE_LAYOUT_IN(...)= "
                      "WEFT_CONTAINERS= WEFT_COROUTINE_WRAPPER_LAMBDA=",
    }
    work.mkdir(parents=True, exist_ok=True)
    (work / "Doxyfile").write_text("".join(f"{key} = {value}\n" for key, value in configuration.items()))
    subprocess.run(["doxygen", work / "Doxyfile"], check=True, stderr=subprocess.DEVNULL)
    found = []

    def add(element, kind, name, declaration):
        path, line = place_of(element)
        if path and name.startswith("weft::") and "@" not in name and "detail" not in name:
            found.append({"path": path, "line": line, "kind": kind, "name": name, "declaration": declaration})

    compounds = [one for path in sorted((work / "xml").glob("*.xml"))
                 for one in xml.etree.ElementTree.parse(path).getroot().iter("compounddef")]
    # What is private, with all that is in it.
    hidden = {inner.text.replace(" ", "") for one in compounds for inner in one.findall("innerclass") if inner.get("prot") != "public"}
    hidden |= {name for name in (one.findtext("compoundname").replace(" ", "") for one in compounds)
               if any(name.startswith(f"{outer}::") for outer in hidden)}
    for compound in compounds:
        kind = compound.get("kind")
        if kind not in ("class", "struct", "union", "namespace", "concept"):
            continue
        scope = re.sub(r"<.*>", "", compound.findtext("compoundname")).replace(" ", "")
        if compound.get("prot", "public") != "public" or scope in hidden:
            continue
        if kind == "concept":
            add(compound, kind, scope, f"concept {scope.split('::')[-1]}")
        elif kind != "namespace":
            add(compound, kind, scope, f"{template_of(compound)}{kind} {scope.split('::')[-1]}")
        for member in compound.iter("memberdef"):
            if member.get("prot") != "public" or member.get("kind") == "friend":
                continue
            name = member.findtext("name")
            says = member.get("kind")
            definition = text_in(member.find("definition")).replace(f"{scope}::", "")
            if says == "enum":
                values = ", ".join(value.findtext("name") for value in member.findall("enumvalue"))
                definition = f"enum class {name} {{ {values} }}"
            elif says == "typedef":
                definition = definition if "=" in definition else f"using {name}"
            else:
                definition += text_in(member.find("argsstring"))
            add(member, says, f"{scope}::{name}", f"{template_of(member)}{definition}")
    unique = {(one["path"], one["line"], one["name"], one["declaration"]): one for one in found}
    return sorted(unique.values(), key=lambda one: (one["path"], one["line"]))


# ---- what needs a text -----------------------------------------------------------------------------------------------

OF_THE_STANDARD = {"begin", "end", "data", "size", "empty", "front", "back", "swap"}


def needs_text(one, is_described):
    """Whether a page would lack this member function without a text; is_described says so of a class."""
    scope, _, last = one["name"].rpartition("::")
    declaration = re.sub(r"\bweft::(\w+(< [^<>]* >)?::)*", "", one["declaration"])
    of = scope.rpartition("::")[2]
    if one["kind"] != "function" or not is_described(scope):
        return False
    if scope.endswith("_case") and last in ("may_be_ready", "try_now", "take"):
        return False
    if last.startswith("~") or last in OF_THE_STANDARD or (last.startswith("operator") and last != "operator()"):
        return False
    if last == of and re.search(rf"\b{of}\((|(const )?{of} ?&&? ?\w*)\)", declaration):
        return False
    return not re.search(r"\boverride\b|= ?delete", declaration)


# ---- pages -----------------------------------------------------------------------------------------------------------


def anchor_of(name):
    return re.sub(r"[^a-z0-9_]+", "-", name.lower()).strip("-")


def reference(names):
    """The pages, the groups of headers for the navigation, and what lacks a text, a sentence each."""
    groups = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        if line.startswith("public "):
            _, folder, *stems = line.split()
            groups.setdefault(folder, []).extend(stems)
    classes = {one["name"] for one in names if one["kind"] in ("class", "struct", "union")}
    lacking, navigation, is_implementation = [], [], re.compile(r"// ---- implementation")
    listed = []
    for folder, stems in groups.items():
        pages = []
        for stem in sorted(stems):
            path = f"include/weft/{stem}.hpp"
            of = header(path)
            ends = next((n for n, line in enumerate(of.lines, 1) if is_implementation.match(line)), len(of.lines) + 1)
            page = [f"# {stem}.hpp", "", "```cpp", f"#include <weft/{stem}.hpp>", "```", "", as_markdown(of.intro), ""]
            if not any(line.strip() for line in of.intro):
                lacking.append(f"{path}:1: no sentence introduces this header")
            mine = [one for one in names if one["path"] == path and one["line"] < ends]
            with_text = {one["name"] for one in mine if one["line"] in of.text_of}

            def is_described(scope):
                return scope in with_text or scope.rpartition("::")[0] not in classes
            shown = set()
            for one in mine:
                scope, _, last = one["name"].rpartition("::")
                is_member = scope in classes
                text = of.text_of.get(one["line"])
                if text is None and not is_member and one["name"] not in with_text and not last.startswith("operator"):
                    lacking.append(f"{path}:{one['line']}: {one['name']} has no text above it")
                if text is None and is_member and one["name"] not in with_text and needs_text(one, is_described):
                    lacking.append(f"{path}:{one['line']}: {one['name']}() has no text above it")
                if text is None and (is_member or one["name"] in with_text):
                    continue
                level = "###" if is_member else "##"
                if one["name"] not in shown:
                    page += [f"{level} {escaped(one['name'].removeprefix('weft::'))} {{ #{anchor_of(one['name'])} }}", ""]
                    shown.add(one["name"])
                    listed.append(one["name"].removeprefix("weft::"))
                page += ["```cpp", one["declaration"], "```", "", as_markdown(text or []), ""]
            (DOCS / "reference").mkdir(parents=True, exist_ok=True)
            (DOCS / "reference" / f"{stem}.md").write_text("\n".join(page))
            pages.append({f"{stem}.hpp": f"reference/{stem}.md"})
        navigation.append({folder: pages})
    return navigation, lacking, listed


class tree:
    """Documents of the tree as pages: what they link to becomes one, too."""

    def __init__(self):
        self.pages = {}  # path in the tree -> page
        self.left = []

    def page_of(self, path):
        if path not in self.pages:
            if path.startswith("docs/"):
                page = path.removeprefix("docs/")
            else:
                page = "tree/" + path
            if (ROOT / path).is_dir():
                page += "/index.md"
            elif not path.endswith((".md", ".png")):
                page += ".md"
            self.pages[path] = page
            self.left.append(path)
        return self.pages[path]

    def with_links(self, path, text, page):
        def linked(match):
            target, hash_, at = match[2].partition("#")
            if re.match(r"[a-z]+:", match[2]) or not target:
                return match[0]
            to = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not (ROOT / to).exists():
                sys.exit(f"site: {path} links to {to}, which is not there")
            return f"{match[1]}({posixpath.relpath(self.page_of(to), posixpath.dirname(page))}{hash_}{at if to.endswith('.md') else ''})"

        blocks = re.split(r"(^```.*?^```$)", text, flags=re.S | re.M)
        return "".join(block if block.startswith("```") else re.sub(r"(\[[^\]]*\])\(([^)\s]+)\)", linked, block) for block in blocks)

    def write_all(self):
        while self.left:
            path = self.left.pop()
            page = DOCS / self.pages[path]
            page.parent.mkdir(parents=True, exist_ok=True)
            source = ROOT / path
            if path.endswith(".png"):
                page.write_bytes(source.read_bytes())
            elif source.is_dir():
                entries = sorted(one for one in os.listdir(source) if one.endswith((".cpp", ".hpp", ".md")))
                links = [f"- [{one}]({posixpath.relpath(self.page_of(f'{path}/{one}'), posixpath.dirname(self.pages[path]))})" for one in entries]
                page.write_text("\n".join([f"# {path}", "", *links, ""]))
            elif path.endswith(".md"):
                text = re.sub(r"<!-- compile.*?-->\n", "", source.read_text())
                page.write_text(self.with_links(path, text, self.pages[path]))
            else:
                page.write_text("\n".join([f"# {path}", "", f"````{SHOWN_AS.get(source.suffix, 'text')}", source.read_text(), "````", ""]))


def title_of(path):
    first = (ROOT / path).read_text().splitlines()[0]
    return first.removeprefix("# ").strip()


def main():
    names = public_names(WORK / "doxygen")
    api, lacking, listed = reference(names)
    if lacking:
        sys.exit("\n".join([*lacking, f"site: {len(lacking)} texts are missing"]))
    documents = tree()
    book = re.findall(r"^\d+\. \[[^\]]+\]\(([\w-]+\.md)\)", (ROOT / "docs/book/README.md").read_text(), re.M)
    others = sorted(path.name for path in (ROOT / "docs/book").glob("from-*.md") if path.name not in book)
    listed_too = sorted(path.name for path in (ROOT / "docs/book").glob("*.md") if path.name not in (*book, *others, "README.md"))

    def chapter(name):
        return {title_of(f"docs/book/{name}"): documents.page_of(f"docs/book/{name}")}

    readme = (ROOT / "README.md").read_text()
    (DOCS / "index.md").write_text(documents.with_links("README.md", readme, "index.md"))
    navigation = [
        {"weft": "index.md"},
        {"Book": [{"Chapters": documents.page_of("docs/book/README.md")}, *map(chapter, [*book, *listed_too])]},
        {"Coming from": list(map(chapter, others))},
        {"Reference": api},
        {"Inside": [{"Architecture": documents.page_of("docs/architecture.md")},
                    {"Design notes": [{title_of(path.relative_to(ROOT)): documents.page_of(path.relative_to(ROOT).as_posix())}
                                      for path in sorted((ROOT / "docs/design").glob("*.md"))]},
                    {"Measurements": [{title_of(path.relative_to(ROOT)): documents.page_of(path.relative_to(ROOT).as_posix())}
                                      for path in sorted((ROOT / "docs/measurements").glob("*.md"))]}]},
        {"Changes": documents.page_of("CHANGELOG.md")},
    ]
    documents.write_all()
    (DOCS / "style.css").write_text((ROOT / "tools/site/style.css").read_text())
    configuration = json.loads((ROOT / "tools/site/mkdocs.json").read_text())
    configuration |= {"docs_dir": str(DOCS), "nav": navigation}
    (WORK / "mkdocs.yml").write_text(json.dumps(configuration, indent=1))  # JSON is YAML, too
    (WORK / "names.txt").write_text("\n".join(sorted(set(listed))) + "\n")


main()
