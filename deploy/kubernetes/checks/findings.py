"""Findings of checkov that are not accepted."""

import fnmatch
import json
import pathlib
import subprocess
import sys

# Accepted findings: the check, the resource, after its values file if only there, and the reason.
ACCEPTED = {
    ("CKV_K8S_11", "*"): "CPU is not limited: a limit throttles a program even on an idle node",
    ("CKV_K8S_43", "*"): "the operator chooses a digest: <program>.image.digest",
    (
        "CKV_K8S_15",
        "*",
    ): "release tags do not move; image.pullPolicy covers those that do",
    (
        "CKV_K8S_40",
        "StatefulSet.*-postgresql",
    ): "user 999 owns the files in the official image",
    (
        "CKV_K8S_40",
        "openshift: *",
    ): "the cluster assigns high ids",
    ("CKV_K8S_8", "Pod.*-test"): "a test ends by itself",
    ("CKV_K8S_9", "Pod.*-test"): "a test serves nothing",
}


def check(renderings):
    folder = renderings[0].file.parent
    options = [
        "--framework",
        "kubernetes",
        "--skip-download",
        "--quiet",
        "--compact",
        "--output",
        "json",
    ]
    command = [sys.executable, "-m", "checkov.main", "--directory", folder, *options]
    ran = subprocess.run(command, capture_output=True, text=True)
    try:
        report = json.loads(ran.stdout)
        passed, failed = report["summary"]["passed"], report["results"]["failed_checks"]
    except (ValueError, KeyError, TypeError):
        yield f"checkov could not be run: {ran.stdout[-500:]} {ran.stderr[-500:]}"
        return
    if report["summary"]["parsing_errors"] or passed < 1000:
        yield f"checkov evaluated too few checks: {report['summary']}"
    seen = set()
    for finding in failed:
        resource = finding["resource"].replace(".quality.", ".")
        in_file = f"{pathlib.Path(finding['file_path']).stem}: {resource}"
        accepted = {
            key
            for key in ACCEPTED
            if key[0] == finding["check_id"]
            and (fnmatch.fnmatch(resource, key[1]) or fnmatch.fnmatch(in_file, key[1]))
        }
        seen |= accepted
        if not accepted:
            yield f"{finding['check_id']} {finding['check_name']}: {resource}"
    for check_id, whose in ACCEPTED.keys() - seen:
        yield f"{check_id} of {whose} is not found any more: remove it from the list"
