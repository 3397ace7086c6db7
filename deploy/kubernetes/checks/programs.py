"""The programs, if they are built, know the settings and commands that the chart gives them."""

import os
import re
import subprocess
import sys

from .chart import PROGRAMS, ROOT, component

TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")


def built(program):
    """Returns the latest build of a program, or of `assay`, if any."""
    name = program if program == "assay" else f"assay-{program}"
    found = [TARGET / profile / name for profile in ["debug", "release"]]
    found = [path for path in found if path.exists()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def skipped(done, missing):
    """Reports a skipped check with the missing programs; a problem with `--built`."""
    text = f"not {done}; missing: {', '.join(missing)}"
    if missing and "--built" in sys.argv:
        yield text
    elif missing:
        print(f"                 ({text})")


def options(program):
    """Returns a program's variables, those that it requires in a pod, and its commands, from `--help`."""
    text = subprocess.run(
        [built(program), "--help"], capture_output=True, text=True, check=True
    ).stdout
    known, needed = set(), set()
    usage = re.search(r"^Usage: (.*)", text, re.M)[1]
    for option in re.split(r"^ +(?=--)", text, flags=re.M)[1:]:
        name, variable = option.split()[0], re.search(r"\[env: (\w+)", option)
        if not variable:
            continue
        known.add(variable[1])
        default = re.search(r"\[default: (.*)\]", option)
        if f"{name} " in usage or (default and "127.0.0.1" in default[1]):
            needed.add(variable[1])
    return known, needed, set(re.findall(r"^  ([a-z-]+)", text, re.M))


def check(renderings):
    missing = [program for program in PROGRAMS if not built(program)]
    yield from skipped("compared", [f"assay-{program}" for program in missing])
    for program in set(PROGRAMS) - set(missing):
        known, needed, commands = options(program)
        for rendering in renderings:
            for _, labels, pod in rendering.pods():
                container, whose = pod["containers"][0], component(labels)
                if whose not in [program, f"{program}-migrate"]:
                    continue
                # A variable may be set by a file; some options are files themselves.
                given = {variable["name"] for variable in container["env"]}
                given = {name if name in known else name.removesuffix("_FILE") for name in given}
                for name in given - known:
                    if name.startswith("ASSAY_"):
                        yield f"{rendering.name}: assay-{program} does not know {name}"
                if whose == program:
                    for name in needed - given:
                        yield f"{rendering.name}: assay-{program} does not get {name}"
                elif not set(container["args"]) <= commands:
                    yield f"{rendering.name}: assay-{program} does not know {container['args']}"
