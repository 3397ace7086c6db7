"""Migrations that run before the release have what they need by then, and their logs are kept."""

from .network import matches
from .pods import secrets

HOOK = "helm.sh/hook"


def check(renderings):
    for rendering in renderings:
        jobs = [found for found in rendering.of_kind("Job")]
        if len(jobs) != 4:
            yield f"{rendering.name}: {len(jobs)} migrations"
        for job in jobs:
            problems = [*kept(job), *before(rendering, job)]
            yield from (f"{rendering.name}: {job['metadata']['name']} {problem}" for problem in problems)


def annotations(found):
    return found["metadata"].get("annotations", {})


def kept(job):
    """Checks that the log of a migration can be read after it."""
    if annotations(job).get(f"{HOOK}-delete-policy", "before-hook-creation") != "before-hook-creation":
        yield "is deleted with its log when it ends"
    if not job["spec"].get("ttlSecondsAfterFinished"):
        yield "is never removed"


def before(rendering, job):
    """Checks that a hook needs only what earlier hooks have made."""
    events = annotations(job).get(HOOK)
    pod = job["spec"]["template"]["spec"]
    labels = job["spec"]["template"]["metadata"]["labels"]
    bundled = rendering.values["postgresql"]["bundled"]
    if bundled == bool(events):
        yield "is a hook, although its server is in the release" if bundled else "is not a hook"
    if not events:
        return
    weight = int(annotations(job)[f"{HOOK}-weight"])
    earlier = [
        found
        for found in rendering.objects
        if annotations(found).get(HOOK) == events
        and int(annotations(found)[f"{HOOK}-weight"]) < weight
    ]
    for found in earlier:
        # Helm deletes hooks that have succeeded also when it no longer waits for a later one.
        if annotations(found)[f"{HOOK}-delete-policy"] != "before-hook-creation":
            yield f"may lose the {found['kind']} {found['metadata']['name']} while it runs"
    accounts = [found["metadata"]["name"] for found in earlier if found["kind"] == "ServiceAccount"]
    if pod["serviceAccountName"] not in accounts:
        yield f"has no service account {pod['serviceAccountName']} yet"
    for name, _ in (pair for volume in pod.get("volumes", []) for pair in secrets(volume)):
        if name in rendering.secrets():
            yield f"has no Secret {name} yet"
    if not rendering.values["networkPolicy"]["enabled"]:
        return
    policies = [found["spec"] for found in earlier if found["kind"] == "NetworkPolicy"]
    policies = [policy for policy in policies if matches(policy["podSelector"], labels)]
    needed = [rendering.values["databases"]["port"], *rendering.values["networkPolicy"]["dnsPorts"]]
    rules = [rule for policy in policies for rule in policy.get("egress", [])]
    allowed = {port.get("port") for rule in rules for port in rule["ports"]}
    for port in set(needed) - allowed:
        yield f"cannot reach port {port} in a namespace that denies all traffic"
