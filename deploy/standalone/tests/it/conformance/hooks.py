"""Hooks of Schemathesis: ids of existing records, without which most answers are 404."""

import json
import os
import random

import schemathesis

# Ids of one record of each kind, by the names of path parameters.
IDS = json.loads(os.environ["ASSAY_IDS"])

# Names in queries and bodies.
IDS["ForeignId"] = IDS["projectId"]


# The parts of a file that arrives in several requests are plain bytes.
schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")


def known(name):
    return IDS.get(name[:1].lower() + name[1:], IDS.get(name))


@schemathesis.hook
def before_call(context, case, kwargs):
    """Puts existing ids into two of three requests, except deletions."""
    dice = random.Random(case.id)
    if case.method == "DELETE" or dice.random() < 1 / 3:
        # A parameter with the value 0 selects another operation.
        renamed = {name: "1" for name, value in case.path_parameters.items() if value == "0"}
        case.path_parameters.update(renamed)
        return
    for name in case.path_parameters:
        if name in IDS:
            case.path_parameters[name] = IDS[name]
    if isinstance(case.body, dict):
        for name, value in case.body.items():
            if isinstance(value, str) and known(name) and dice.random() < 0.8:
                case.body[name] = known(name)
