"""The values in docs/kubernetes.md are valid, alone or together with those of a file in ci/, and its objects
of operators, which have no schemas here, are complete."""

import re

import yaml
from helm_python import HelmError

from . import schemas
from .chart import ROOT, render, values_files


def merged(values, others):
    both = isinstance(values, dict) and isinstance(others, dict)
    return (
        {**values, **{key: merged(values.get(key), value) for key, value in others.items()}}
        if both
        else others
    )


def check(_):
    text = (ROOT / "docs/kubernetes.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", text, re.M | re.S)
    if len(blocks) < 5:
        yield f"{len(blocks)} blocks of values"
    for block in blocks:
        documents, errors = list(yaml.safe_load_all(block)), []
        if all("apiVersion" in document for document in documents):
            for document in documents:
                lacking = {"kind", "metadata", "spec"} - document.keys()
                if lacking:
                    yield f"an object lacks {sorted(lacking)}:\n{block}"
            continue
        values = yaml.safe_load(block)
        for base in [{}, *(values_files()[name] for name in ["external", "agent"])]:
            try:
                rendering = render(merged(base, values))
            except HelmError as error:
                errors.append(str(error))
                continue
            rendering.name = block.splitlines()[0]
            yield from schemas.problems(rendering)
            break
        else:
            yield f"the values are rejected:\n{block}{errors[0]}"
