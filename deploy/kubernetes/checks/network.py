"""Network policies: compares the flows between pods that the policies allow with those that are needed."""

import itertools
import re

from .chart import component, own_values
from .pods import secrets as secrets_in

GRPC = {"identity": 50051, "catalog": 50052, "execution": 50053, "notification": 50054}
PROGRAMS = ["gateway", *GRPC]
BACKUPS = ["backup", "restore"]
TASKS = [*(f"{service}-migrate" for service in GRPC), "verify", "rebuild", *BACKUPS]

# Calls between programs: the gateway calls all services, services call identity for token keys, and the
# execution service calls the catalog.
CALLS = {
    "gateway": ["identity", "catalog", "execution", "notification"],
    "catalog": ["identity"],
    "execution": ["identity", "catalog"],
    "notification": ["identity"],
}
URL = re.compile(r"^\w+://(?:[^@/]*@)?([^/:]+):(\d+)")


def needed(rendering):
    """Returns the flows that pods of the release need."""
    flows = {(a, b, GRPC[b]) for a, called in CALLS.items() for b in called}
    flows |= {("test", program, 9090) for program in PROGRAMS} | {("test", "gateway", 8080)}
    if rendering.values["postgresql"]["bundled"]:
        tasks = TASKS if rendering.values["backup"]["enabled"] else set(TASKS) - set(BACKUPS)
        flows |= {(a, "postgresql", 5432) for a in [*GRPC, *tasks]}
    if rendering.values["nats"]["bundled"]:
        flows |= {(a, "nats", 4222) for a in PROGRAMS}
    return flows


def outside(rendering):
    """Returns the ports outside the release that each pod needs."""
    values = rendering.values
    dns = values["networkPolicy"]["dnsPorts"]
    ports = {name: set(dns) for name in [*PROGRAMS, *TASKS, "test"]}
    for name in [*GRPC, *TASKS]:
        if not values["postgresql"]["bundled"]:
            ports[name].add(values["databases"]["port"])
    for name in PROGRAMS:
        if not values["nats"]["bundled"]:
            ports[name].add(values["nats"]["port"])
        if values["tracing"]["otlpEndpoint"]:
            ports[name].add(4317)
    if values["mail"]["smtpUrl"]["secretName"] or values["mail"]["smtpUrl"].get("file"):
        ports["identity"].add(values["mail"]["smtpPort"])
    if values["artifacts"]["store"] == "s3":
        s3 = values["artifacts"]["s3"]
        for name in ["catalog", "execution"]:
            ports[name].add(3128 if s3["proxyUrl"] else 9000 if s3["endpoint"] else 443)
    ports["notification"] |= set(values["notification"]["webhookPorts"])
    for name in [*PROGRAMS, *TASKS]:
        for rule in [*values["pods"]["extraEgress"], *own_values(values, name)["extraEgress"]]:
            ports[name] |= {port["port"] for port in rule["ports"]}
    return ports


def matches(selector, labels):
    for expression in selector.get("matchExpressions", []):
        if expression["operator"] != "In":
            raise ValueError(f"unknown operator: {expression}")
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return selector.get("matchLabels", {}).items() <= labels.items()


def allows(policies, direction, subject, other, port):
    """Returns whether the policies allow a connection between `subject` and `other`, in one namespace."""
    peers = {"Ingress": "from", "Egress": "to"}[direction]
    mine = [
        policy
        for policy in policies
        if direction in policy["policyTypes"] and matches(policy["podSelector"], subject)
    ]
    if not mine:
        return True
    for rule in itertools.chain(*(policy.get(direction.lower(), []) for policy in mine)):
        ports = {
            found.get("port", port)
            for found in rule.get("ports", [{}])
            if found.get("protocol") != "UDP"
        }
        if port not in ports:
            continue
        if peers not in rule:
            return True
        for peer in rule[peers]:
            if set(peer) == {"podSelector"} and matches(peer["podSelector"], other):
                return True
    return False


def check(renderings):
    for rendering in renderings:
        policies = [found["spec"] for found in rendering.of_kind("NetworkPolicy")]
        if not rendering.values["networkPolicy"]["enabled"]:
            if policies:
                yield f"{rendering.name}: has network policies although they are disabled"
            continue
        yield from (f"{rendering.name}: {problem}" for problem in flows(rendering, policies))
        yield from (f"{rendering.name}: {problem}" for problem in ways_out(rendering, policies))


def flows(rendering, policies):
    pods = {component(labels): labels for _, labels, _ in rendering.pods()}
    ports = {*GRPC.values(), 8080, 9090, 5432, 4222, 8222, 22}
    # Egress to any address at a port includes the release's pods; their ingress decides.
    may = {
        (a, b, port)
        for (a, b), port in itertools.product(itertools.permutations(pods, 2), ports)
        if allows(policies, "Egress", pods[a], pods[b], port)
        and allows(policies, "Ingress", pods[b], pods[a], port)
    }
    must = needed(rendering)
    for a, b, port in sorted(must - may):
        yield f"{a} does not reach {b} at {port}"
    for a, b, port in sorted(may - must):
        yield f"{a} reaches {b} at {port} without need"

    # A pod that no policy selects has no access.
    unknown = {**pods["gateway"], "app.kubernetes.io/component": "unknown"}
    for direction in ["Ingress", "Egress"]:
        if allows(policies, direction, unknown, pods["gateway"], 8080):
            yield f"a pod that no policy selects has {direction}"

    # Programs can reach every address in their settings.
    owners = {
        found["metadata"]["name"]: component(found["spec"]["selector"])
        for found in rendering.of_kind("Service")
    }
    secrets = rendering.secrets()
    for name, labels, pod in rendering.pods():
        settings = [variable.get("value", "") for variable in pod["containers"][0].get("env", [])]
        for volume in pod.get("volumes", []):
            for secret, items in secrets_in(volume):
                settings += [secrets.get(secret, {}).get(item["key"], "") for item in items]
        for host, port in (found.groups() for found in map(URL.match, settings) if found):
            flow = (component(labels), owners.get(host), int(port))
            if flow[1] and flow not in may:
                yield f"{name} is configured with {host}:{port}, which it cannot reach"

    # Other pods, in any namespace, reach the gateway at most.
    stranger = {"app": "stranger"}
    for name, labels in pods.items():
        for port in ports:
            is_open = name == "gateway" and port == 8080
            is_open = is_open and not rendering.values["networkPolicy"]["gatewayFrom"]
            if allows(policies, "Ingress", labels, stranger, port) != is_open:
                yield f"{name} is {'closed' if is_open else 'open'} at {port} to strangers"


def ways_out(rendering, policies):
    expected = outside(rendering)
    for _, labels, _ in rendering.pods():
        name, found = component(labels), set()
        for policy in policies:
            if not matches(policy["podSelector"], labels):
                continue
            for rule in policy.get("egress", []):
                if any(set(peer) != {"podSelector"} for peer in rule.get("to", [{}])):
                    found |= {port.get("port", "any") for port in rule["ports"]}
        gets, must = (sorted(map(str, ports)) for ports in (found, expected.get(name, set())))
        if gets != must:
            yield f"{name} may leave the release at {gets}, but needs {must}"
