"""The programs themselves, where they are built: do they know what they are told?"""

import os
import re
import subprocess
import sys

from .chart import PROGRAMS, ROOT, component

TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")


def built(program):
    """The program that was built last."""
    found = [TARGET / profile / f"assay-{program}" for profile in ["debug", "release"]]
    found = [path for path in found if path.exists()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def skipped(done, missing):
    """Tells what was not done, for what is missing; with `--built` that is a problem."""
    said = f"not {done}, as there is no {', '.join(missing)}"
    if missing and "--built" in sys.argv:
        yield said
    elif missing:
        print(f"                 ({said})")


def told(program):
    """What a program says of itself: its options, as variables; those that it cannot do without, or not
    in a pod; and its commands."""
    said = subprocess.run(
        [built(program), "--help"], capture_output=True, text=True, check=True
    ).stdout
    known, needed = set(), set()
    usage = re.search(r"^Usage: (.*)", said, re.M)[1]
    for option in re.split(r"^ +(?=--)", said, flags=re.M)[1:]:
        name, variable = option.split()[0], re.search(r"\[env: (\w+)", option)
        if not variable:
            continue
        known.add(variable[1])
        default = re.search(r"\[default: (.*)\]", option)
        if f"{name} " in usage or (default and "127.0.0.1" in default[1]):
            needed.add(variable[1])
    return known, needed, set(re.findall(r"^  ([a-z-]+)", said, re.M))


def check(renderings):
    missing = [program for program in PROGRAMS if not built(program)]
    yield from skipped("compared", [f"assay-{program}" for program in missing])
    for program in set(PROGRAMS) - set(missing):
        known, needed, commands = told(program)
        for rendering in renderings:
            for _, labels, pod in rendering.pods():
                container, whose = pod["containers"][0], component(labels)
                if whose not in [program, f"{program}-migrate"]:
                    continue
                # A variable may be given by a file; some options are files themselves.
                given = {variable["name"] for variable in container["env"]}
                given = {name if name in known else name.removesuffix("_FILE") for name in given}
                for name in given - known:
                    if name.startswith("ASSAY_"):
                        yield f"{rendering.name}: assay-{program} knows no {name}"
                if whose == program:
                    for name in needed - given:
                        yield f"{rendering.name}: assay-{program} is not told {name}"
                elif not set(container["args"]) <= commands:
                    yield f"{rendering.name}: assay-{program} knows no {container['args']}"
