"""The table of values in the chart's README, generated from the comments in values.yaml."""

import json
import re

import yaml

from .chart import FOLDER

README = FOLDER / "README.md"
BEGIN, END = (
    "<!-- values: written by deploy/kubernetes/check --write -->\n",
    "<!-- end of values -->\n",
)

# Values whose comments also apply to others.
LIKE = {
    **{program: "gateway" for program in ["identity", "catalog", "execution", "notification"]},
    **{task: "gateway" for task in ["migration", "comparison", "backup"]},
    **{f"{service}.migration": "identity.migration" for service in ["catalog", "execution", "notification"]},
    **{
        f"databases.{service}": "databases.identity"
        for service in ["catalog", "execution", "notification"]
    },
}


def documented():
    """Returns the comment of each value that has one with `--`, by path."""
    path, comment, found = [], None, {}
    for line in (FOLDER / "values.yaml").read_text().splitlines():
        if text := re.match(r" *# ?(.*)", line):
            begins = text[1].startswith("-- ")
            if begins:
                comment = text[1].removeprefix("-- ")
            elif comment is not None:
                comment += f" {text[1].strip()}"
        elif key := re.match(r"( *)([\w-]+):", line):
            path = [*path[: len(key[1]) // 2], key[2]]
            if comment:
                found[".".join(path)] = comment
            comment = None
        else:
            comment = None
    return found


def leaves(values, path=()):
    if isinstance(values, dict) and values:
        for key, value in values.items():
            yield from leaves(value, (*path, key))
    else:
        yield path


def table():
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())
    lines = ["| Value | Default | |", "|---|---|---|"]
    for path, comment in documented().items():
        default = values
        for key in path.split("."):
            default = default[key]
        default = json.dumps(default, ensure_ascii=False)
        if default in ['{"secretName": "", "secretKey": ""}', '""'] or len(default) > 60:
            default = "" if len(default) <= 60 else "see `values.yaml`"
        else:
            default = f"`{default}`"
        lines.append(f"| `{path}` | {default} | {comment.replace('|', '&#124;')} |")
    return "\n".join(lines) + "\n"


def write():
    before, _, rest = README.read_text().partition(BEGIN)
    README.write_text(before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2])


def check(_):
    found = documented()
    for path in leaves(yaml.safe_load((FOLDER / "values.yaml").read_text())):
        # Its own comment, that of a parent, or that of the value it is like.
        names = {".".join(path[:length]) for length in range(1, len(path) + 1)}
        for name, first in LIKE.items():
            names |= {
                first + found[len(name) :] for found in set(names) if found.startswith(f"{name}.")
            }
        if not names & found.keys():
            yield f"{'.'.join(path)} has no comment"
    text = README.read_text() if README.exists() else ""
    if text.partition(BEGIN)[2].partition(END)[0].strip() != table().strip():
        yield "the table of values in the README is out of date: run check --write"
