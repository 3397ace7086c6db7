"""Names for the longest release, for two releases side by side, and for a later revision."""

import itertools

from .chart import render, values_files

# Two names of the maximum length for Helm, with a long common prefix.
LONG = ["a" * 26 + "-quality-assurance-of-the-n", "a" * 26 + "-quality-assurance-of-the-s"]


def names(rendering):
    """Returns the kind and name of every object."""
    return {(found["kind"], found["metadata"]["name"]) for found in rendering.objects}


def check(_):
    for file, values in values_files().items():
        # An explicit name applies to one release only.
        values = {key: value for key, value in values.items() if key != "fullnameOverride"}
        longest = [render(values, name=name, revision=99999) for name in LONG]
        for kind, name in names(longest[0]):
            if len(name) > 63 or (kind == "StatefulSet" and len(name) > 52):
                yield f"{file}: the name of the {kind} {name} is too long"
        for met in names(longest[0]) & names(longest[1]):
            yield f"{file}: two releases with long names both have the {met[0]} {met[1]}"

        # No name of a release "x-…" may be one of a release "x", whatever follows the dash. Custom
        # objects have the bare name of their release.
        endings = {(kind, name[1:]) for kind, name in names(render(values, name="x"))}
        for (kind, long), (other, short) in itertools.permutations(endings, 2):
            if kind == other and short and long.endswith(short):
                yield (
                    f"{file}: the releases “x” and “x{long.removesuffix(short)}” "
                    f"both have the {kind} x{long}"
                )

        first, second = (render(values, name="x", revision=revision) for revision in [1, 2])
        jobs = [{name for kind, name in names(found) if kind == "Job"} for found in (first, second)]
        hooks = any(
            "helm.sh/hook" in job["metadata"].get("annotations", {}) for job in first.of_kind("Job")
        )
        if not hooks and jobs[0] & jobs[1]:
            yield f"{file}: a Job, which is immutable, has the same name in the next revision"
