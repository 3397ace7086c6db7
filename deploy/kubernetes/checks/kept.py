"""Generated Secrets are kept: the next installation or upgrade finds them in the cluster. Without a
cluster, the check replaces `lookup` in the chart by a value with the existing objects, by kind and name."""

import re
import shutil
import tempfile
from pathlib import Path

import helm_python as helm

from .chart import FOLDER, Rendering, quietly, values_files

LOOKUP = re.compile(r'lookup "[\w/]+" "(\w+)" (\$?(?:\.root)?)\.Release\.Namespace (.+?) }}')


def chart_that_finds(folder, change=lambda description: None):
    """Returns the chart, which finds existing objects in the value `global.found`, after a change of its
    description."""
    shutil.copytree(FOLDER, folder)
    change(Path(folder) / "Chart.yaml")
    count = 0
    for template in Path(folder).glob("templates/*"):
        if template.is_file():
            text, found = LOOKUP.subn(
                r'dig "\1" (\3) dict \2.Values.global.found }}', template.read_text()
            )
            template.write_text(text)
            count += text.count("lookup ") * 100 + found
    assert count == 3, f"{count}: the chart has an unexpected `lookup`"
    with quietly():
        return helm.Chart.load(folder)


def render(chart, values, cluster):
    values = {**values, "global": {"found": {"Secret": cluster}}}
    with quietly():
        return Rendering("kept", {}, chart.render(values, name="assay", namespace="quality"))


def cluster_of(rendering):
    return {
        found["metadata"]["name"]: {"data": found["data"]} for found in rendering.of_kind("Secret")
    }


def annotations(rendering):
    return {
        found["metadata"]["name"]: found["spec"]["template"]["metadata"].get("annotations", {})
        for found in rendering.of_kind("Deployment")
    }


def check(_):
    with tempfile.TemporaryDirectory() as folder:
        chart = chart_that_finds(f"{folder}/assay")
        bundled, external = values_files()["bundled"], values_files()["external"]

        first = render(chart, bundled, {})
        if not first.secrets():
            yield "no Secrets are generated"
        if first.secrets() == render(chart, bundled, {}).secrets():
            yield "generated Secrets are not random"
        again = render(chart, bundled, cluster_of(first))
        for name, data in first.secrets().items():
            for key, value in data.items():
                if again.secrets()[name].get(key) != value:
                    yield f"{key} of the Secret {name} is not kept"
        if annotations(first) != annotations(again):
            yield "the first upgrade restarts pods without a change"

        # As if a new release of the chart generated another one.
        cluster = cluster_of(first)
        del cluster["assay-identity"]["data"]["encryption-keys"]
        later = render(chart, bundled, cluster).secrets()["assay-identity"]
        if not re.fullmatch(r"1:[A-Za-z0-9+/]{43}=", later.get("encryption-keys", "")):
            yield "a missing secret is not generated"
        if later["admin-password"] != first.secrets()["assay-identity"]["admin-password"]:
            yield "a secret is regenerated because another one is missing"

        for name, data in first.secrets().items():
            kept = next(s for s in first.of_kind("Secret") if s["metadata"]["name"] == name)
            if kept["metadata"]["annotations"].get("helm.sh/resource-policy") != "keep":
                yield f"uninstalling deletes the Secret {name}, but not the data it protects"
            if any(not value for value in data.values()):
                yield f"the Secret {name} has an empty value"

        # An upgrade restarts the pods that read a changed Secret.
        before, after = (
            annotations(render(chart, external, {"assay-mail": {"data": {"url": url}}}))
            for url in ["b25l", "dHdv"]
        )
        changed = {name for name in before if before[name] != after[name]}
        if changed != {"assay-identity"}:
            yield f"another SMTP server restarts {changed or 'nothing'}"
