"""The chart, rendered with each of the values files in ci/."""

import base64
import contextlib
import os
import pathlib
import re
import tempfile

import helm_python as helm
import yaml

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "assay"
ROOT = FOLDER.parents[2]
PROGRAMS = ["catalog", "execution", "gateway", "identity", "notification"]
# Kinds that have pods, with the path to the description of the pod.
POD_PATHS = {
    "Deployment": ["spec", "template"],
    "StatefulSet": ["spec", "template"],
    "Job": ["spec", "template"],
    "CronJob": ["spec", "jobTemplate", "spec", "template"],
    "Pod": [],
}

# libyaml's is ten times as fast.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@contextlib.contextmanager
def quietly():
    """Suppresses Helm's log, which reports links that lead out of the chart, which is intended, and
    rejected values."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


with quietly():
    CHART = helm.Chart.load(FOLDER)


class Rendering:
    """All objects that the chart renders from one values file."""

    def __init__(self, name, values, manifests):
        self.name, self.values = name, values
        self.notes = next(text for path, text in manifests.items() if path.endswith("NOTES.txt"))
        texts = [text for path, text in sorted(manifests.items()) if not path.endswith(".txt")]
        self.text = "\n---\n".join(texts)
        self.objects = [found for text in texts for found in yaml.load_all(text, Loader) if found]
        self.file = None

    def of_kind(self, *kinds):
        return [found for found in self.objects if found["kind"] in kinds]

    def templates(self):
        """Yields each object that has pods, with the metadata and the spec of its pods."""
        for found in self.of_kind(*POD_PATHS):
            pod = found
            for step in POD_PATHS[found["kind"]]:
                pod = pod[step]
            yield found, pod["metadata"], pod["spec"]

    def pods(self):
        """Yields the name, the labels and the spec of each pod."""
        for found, metadata, spec in self.templates():
            if claims := found["spec"].get("volumeClaimTemplates"):
                volumes = [
                    {"name": claim["metadata"]["name"], "persistentVolumeClaim": {}}
                    for claim in claims
                ]
                spec = {**spec, "volumes": spec["volumes"] + volumes}
            yield f"{found['kind']} {found['metadata']['name']}", metadata["labels"], spec

    def secrets(self):
        """Returns the Secrets that the chart generates: name, key, value."""
        return {
            found["metadata"]["name"]: {
                key: base64.b64decode(value).decode() for key, value in found["data"].items()
            }
            for found in self.of_kind("Secret")
        }


def component(labels):
    return labels["app.kubernetes.io/component"]


def own_values(values, name):
    """Returns the values of the pods of a component, in addition to those of all pods."""
    shared = {"verify": "comparison", "rebuild": "comparison", "restore": "backup", "test": "tests"}
    if name.endswith("-migrate"):
        of_service = values[name.removesuffix("-migrate")]["migration"]
        return {
            **values["migration"],
            **{field: {**values["migration"][field], **of_service[field]} for field in of_service},
        }
    return values[shared.get(name, name)]


def render(values, name="assay", revision=1):
    with quietly():
        manifests = CHART.render(values, name=name, namespace="quality", revision=revision)
    return Rendering(name, CHART.merge_values(values), manifests)


def values_files():
    return {
        path.stem: yaml.safe_load(path.read_text()) for path in sorted(FOLDER.glob("ci/*.yaml"))
    }


def renderings(folder):
    found = []
    for name, values in values_files().items():
        rendering = render(values)
        rendering.name, rendering.file = name, folder / f"{name}.yaml"
        rendering.file.write_text(rendering.text)
        found.append(rendering)
    return found


def lint(_):
    for name, values in values_files().items():
        with quietly():
            messages = helm.lint(FOLDER, values=values, strict=True)["messages"]
        for finding in messages:
            # The finding about a missing icon matters to public catalogues only.
            if finding["error"] != "icon is recommended":
                yield f"{name}: {finding['path']}: {finding['error']}"

    with tempfile.TemporaryDirectory() as folder:
        with quietly():
            chart = helm.Chart.load(helm.package(FOLDER, destination=folder))
        packed = {file["name"]: file["data"].encode() for file in chart.files}
        for name in sorted(path.name for path in (FOLDER / "files").iterdir()):
            if packed.get(f"files/{name}") != (FOLDER / "files" / name).read_bytes():
                yield f"files/{name} is not in the package of the chart"
        if any(name.startswith("ci/") for name in packed):
            yield "the package of the chart contains the values files of its tests"

    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    if yaml.safe_load((FOLDER / "Chart.yaml").read_text())["appVersion"] != version:
        yield f"appVersion is not {version}, the version of the programs"
