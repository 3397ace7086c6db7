"""An upgrade or a rollback that skips a release is rejected."""

import tempfile

import helm_python as helm
import yaml

from .chart import FOLDER, quietly
from .kept import chart_that_finds

# Installed version, version of the chart, whether it is the next or the previous release.
PAIRS = [
    ("0.1.0", "0.1.0", True),
    ("0.1.4", "0.2.0", True),
    ("0.2.0", "0.1.4", True),
    ("0.1.4", "0.3.0", False),
    ("0.3.0", "0.1.0", False),
    ("0.9.1", "1.0.2", True),
    ("1.0.2", "0.9.1", True),
    ("0.9.1", "1.1.0", False),
    ("1.4.0", "2.0.0-rc.1", True),
    ("1.0.0", "3.0.0", False),
]


def check(_):
    for installed, version, is_allowed in PAIRS:
        with tempfile.TemporaryDirectory() as folder:
            chart = chart_of(version, f"{folder}/assay")
            labels = {"labels": {"app.kubernetes.io/version": installed}}
            found = {"Deployment": {"assay-identity": {"metadata": labels}}}
            try:
                with quietly():
                    chart.render({"global": {"found": found}}, name="assay", namespace="quality")
                if not is_allowed:
                    yield f"an upgrade from {installed} to {version} is accepted"
            except helm.HelmError as error:
                if is_allowed:
                    yield f"an upgrade from {installed} to {version} is rejected: {error}"
                elif f"Assay {installed} is installed" not in str(error):
                    yield f"{installed} to {version} is rejected with “{error}”"


def chart_of(version, folder):
    """Returns the chart as that of another release."""

    def change(file):
        described = yaml.safe_load(file.read_text())
        file.write_text(yaml.safe_dump({**described, "appVersion": version}))

    return chart_that_finds(folder, change)
