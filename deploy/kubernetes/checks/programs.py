"""The programs themselves, where they are built: do they know what they are told?"""

import os
import re
import subprocess

from .chart import PROGRAMS, ROOT, component

TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")


def built(program):
    """The program that was built last."""
    found = [TARGET / profile / f"assay-{program}" for profile in ["debug", "release"]]
    found = [path for path in found if path.exists()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def told(program):
    """What a program says of itself: its options, as variables; those that it cannot do without, or not
    in a pod; and its commands."""
    said = subprocess.run([built(program), "--help"], capture_output=True, text=True, check=True).stdout
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
    if missing:
        print(f"       (not compared, as they are not built: {', '.join(missing)})")
    for program in set(PROGRAMS) - set(missing):
        known, needed, commands = told(program)
        for rendering in renderings:
            for name, labels, pod in rendering.pods():
                container = pod["containers"][0]
                set_ = {variable["name"].removesuffix("_FILE") for variable in container.get("env", [])}
                # Options that end so themselves.
                set_ |= {variable["name"] for variable in container.get("env", [])} & known
                ours = {variable for variable in set_ if variable.startswith("ASSAY_")}
                if component(labels) == f"{program}-migrate":
                    if not set(container["args"]) <= commands:
                        yield f"{rendering.name}: assay-{program} knows no command {container['args']}"
                elif component(labels) == program:
                    for variable in needed - ours:
                        yield f"{rendering.name}: assay-{program} is not told {variable}"
                else:
                    continue
                for variable in ours - known:
                    if f"{variable}_FILE" not in known:
                        yield f"{rendering.name}: assay-{program} knows no {variable}"
