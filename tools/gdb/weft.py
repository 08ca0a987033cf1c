# Commands for gdb, of a process that it has stopped or of a core file:
#
#     (gdb) source weft.py
#     (gdb) weft tasks [TEXT]   all tasks, or those whose function, wait or id has TEXT in it
#     (gdb) weft bt ID          the stack of one, with the locals of its coroutines where the compiler tells their type
#     (gdb) weft graph [FILE]   who waits for whom, for Graphviz; to a file, or here
#
# What lives is found by the program `weft`, which reads the process's memory or the core file as it does without gdb:
# $WEFT_TOOL names it, else it is bin/weft of the prefix in which this is installed as share/weft/gdb/weft.py, or in the PATH.
#
# Locals are those of clang, at the coroutine's last suspension: it describes a coroutine's frame as a type of its own, and
# names a variable in it `__coro_frame`. In optimized code most fields of that type are called by their types. g++ 12 tells no
# more of a frame than what lies in all of them, so of its coroutines the function is shown and no locals.
import json
import os
import shutil
import subprocess

import gdb


def tool():
    here = os.path.dirname(os.path.abspath(__file__)) if "__file__" in globals() else "."
    for one in (os.environ.get("WEFT_TOOL"), os.path.join(here, "../../../bin/weft"), shutil.which("weft")):
        if one and os.access(one, os.X_OK):
            return one
    raise gdb.GdbError("the program weft was not found: set WEFT_TOOL to where it is")


def core_file():
    is_next = False
    for line in gdb.execute("info files", to_string=True).splitlines():
        line = line.strip()
        if is_next:
            return line[1:].split("'")[0]
        is_next = line.endswith("core dump file:")
    return None


def ask(how):
    inferior = gdb.selected_inferior()
    core = core_file()
    if core is None and not inferior.pid:
        raise gdb.GdbError("there is no process and no core file")
    # Of names in UTF-8, also where gdb was started with a locale that is not.
    done = subprocess.run(
        [tool(), "dump", core or str(inferior.pid), how], capture_output=True, encoding="utf-8", errors="replace", check=False
    )
    if done.returncode != 0:
        raise gdb.GdbError(done.stderr.strip())
    return done.stdout


def tasks():
    return json.loads(ask("--json"))


def describe(one):
    waits = " or ".join(
        what["what"] + " " + what["at"] + (", held by " + what["holder"] if what["holder"] else "") for what in one["waits"]
    )
    return "%s %s %s: %s%s" % (one["id"], one["kind"], one["function"], one["state"], " for " + waits if waits else "")


def frame_type(resume):
    """The type of the frame of the coroutine that has this resume function; None where the compiler does not tell."""
    block = gdb.block_for_pc(resume)
    while block is not None:
        for symbol in block:
            if symbol.name == "__coro_frame":
                return symbol.type
        if block.function is not None:
            break
        block = block.superblock
    return None


def show_locals(at, code):
    kind = frame_type(code)
    if kind is None:
        return
    frame = gdb.Value(at).cast(kind.pointer()).dereference()
    for field in kind.fields():
        if field.name and not field.name.startswith("__"):
            try:
                shown = frame[field].format_string(max_depth=2, max_elements=16)
            except gdb.error as why:  # memory that a core file lacks: the stack goes on
                shown = "<%s>" % why
            gdb.write("        %s = %s\n" % (field.name, shown))


class Weft(gdb.Command):
    """Looks at the tasks of a program that uses weft."""

    def __init__(self):
        super().__init__("weft", gdb.COMMAND_STACK, prefix=True)


class Tasks(gdb.Command):
    """weft tasks [TEXT]: all tasks, or those whose function, wait or id has TEXT in it."""

    def __init__(self):
        super().__init__("weft tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        seen = tasks()
        for circle in seen["deadlocks"]:
            gdb.write("DEADLOCK: " + " -> ".join(circle + circle[:1]) + "\n")
        shown = [line for line in map(describe, seen["tasks"]) if argument in line]
        for line in shown:
            gdb.write(line + "\n")
        gdb.write("%d of %d tasks\n" % (len(shown), len(seen["tasks"])))


class Backtrace(gdb.Command):
    """weft bt ID: the stack of the task that `weft tasks` shows with this id, and who waits for it."""

    def __init__(self):
        super().__init__("weft bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        seen = {one["id"]: one for one in tasks()["tasks"]}
        one = seen.get(argument.strip())
        if one is None:
            raise gdb.GdbError("there is no task %s: `weft tasks` lists them" % (argument.strip() or "without an id"))
        depth = 0
        while one is not None:
            gdb.write(describe(one) + "\n")
            for name, frame in zip(one["stack"], one["frames"]):
                gdb.write("  #%-3d %s\n" % (depth, name))
                depth += 1
                if frame["at"] != "0x0":
                    show_locals(int(frame["at"], 16), int(frame["code"], 16))
            one = seen.get(one["parent"])


class Graph(gdb.Command):
    """weft graph [FILE]: who waits for whom, as a graph for Graphviz."""

    def __init__(self):
        super().__init__("weft graph", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        text = ask("--dot")
        if not argument.strip():
            gdb.write(text)
            return
        with open(argument.strip(), "w", encoding="utf-8") as out:
            out.write(text)


Weft()
Tasks()
Backtrace()
Graph()
