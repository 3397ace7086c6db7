"""Secrets that the chart makes: the next installation or upgrade finds them in the cluster, and keeps
them. There is no cluster here; what it would find is put into the chart instead of `lookup`."""

import re
import shutil
import tempfile
from pathlib import Path

import helm_python as helm

from .chart import FOLDER, Rendering, quietly, values_files

LOOKUP = re.compile(r'lookup "v1" "Secret" (\$(?:\.root)?)\.Release\.Namespace (.+?) }}')


def chart_that_finds(folder):
    """The chart, with what there is in the cluster as the value `global.found`."""
    shutil.copytree(FOLDER, folder)
    count = 0
    for template in Path(folder).glob("templates/*"):
        if template.is_file():
            text, found = LOOKUP.subn(
                r"dig (\2) dict \1.Values.global.found }}", template.read_text()
            )
            template.write_text(text)
            count += text.count("lookup ") * 100 + found
    assert count == 2, f"{count}: the chart looks for things that are not known here"
    with quietly():
        return helm.Chart.load(folder)


def render(chart, values, cluster):
    values = {**values, "global": {"found": cluster}}
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
            yield "no Secrets are made"
        if first.secrets() == render(chart, bundled, {}).secrets():
            yield "what is made is not made up"
        again = render(chart, bundled, cluster_of(first))
        for name, data in first.secrets().items():
            for key, value in data.items():
                if again.secrets()[name].get(key) != value:
                    yield f"{key} of the Secret {name} is not kept"
        if annotations(first) != annotations(again):
            yield "pods are restarted for nothing by the first upgrade"

        # As when a release makes another one.
        cluster = cluster_of(first)
        del cluster["assay-identity"]["data"]["encryption-keys"]
        later = render(chart, bundled, cluster).secrets()["assay-identity"]
        if not re.fullmatch(r"1:[A-Za-z0-9+/]{43}=", later.get("encryption-keys", "")):
            yield "a secret that is missing is not made"
        if later["admin-password"] != first.secrets()["assay-identity"]["admin-password"]:
            yield "a secret is made anew because another one is missing"

        for name, data in first.secrets().items():
            kept = next(s for s in first.of_kind("Secret") if s["metadata"]["name"] == name)
            if kept["metadata"]["annotations"].get("helm.sh/resource-policy") != "keep":
                yield f"the Secret {name} goes with the release, and what it opens does not"
            if any(not value for value in data.values()):
                yield f"the Secret {name} has something empty"

        # Whoever changes a Secret of theirs has the pods that read it restarted by an upgrade.
        before, after = (
            annotations(render(chart, external, {"assay-mail": {"data": {"url": url}}}))
            for url in ["b25l", "dHdv"]
        )
        changed = {name for name in before if before[name] != after[name]}
        if changed != {"assay-identity"}:
            yield f"another SMTP server restarts {changed or 'nothing'}"
