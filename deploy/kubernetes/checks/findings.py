"""What checkov finds, besides what is meant."""

import fnmatch
import json
import subprocess
import sys

# What checkov would have otherwise: the finding, whose it is, and why it is so.
MEANT = {
    ("CKV_K8S_11", "*"): "CPU is not limited: a limit slows a program down while its node idles",
    ("CKV_K8S_43", "*"): "a digest is for who installs to choose: <program>.image.digest",
    (
        "CKV_K8S_15",
        "*",
    ): "tags of releases do not move; image.pullPolicy is there for those that do",
    (
        "CKV_K8S_40",
        "StatefulSet.*-postgresql",
    ): "999 is the user that owns the files in the official image",
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
        yield f"checkov understood too little: {report['summary']}"
    seen = set()
    for finding in failed:
        resource = finding["resource"].replace(".quality.", ".")
        meant = {
            key
            for key in MEANT
            if key[0] == finding["check_id"] and fnmatch.fnmatch(resource, key[1])
        }
        seen |= meant
        if not meant:
            yield f"{finding['check_id']} {finding['check_name']}: {resource}"
    for check_id, whose in MEANT.keys() - seen:
        yield f"{check_id} of {whose} is no longer found: take it off the list"
