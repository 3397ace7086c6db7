"""Pods: their privileges, and whether their references exist."""

import re

from .chart import component

# Users of the bundled servers' images; Assay's own is 65532.
USERS = {"postgresql": 999}


def check(renderings):
    for rendering in renderings:
        for name, labels, pod in rendering.pods():
            for problem in [
                *restricted(pod, user(rendering, component(labels))),
                *stopping(pod),
                *references(rendering, labels, pod),
            ]:
                yield f"{rendering.name}: {name} {problem}"
        yield from (f"{rendering.name}: {problem}" for problem in targets(rendering))


def user(rendering, name):
    """Returns the user of a pod, or None if the cluster assigns it, as OpenShift does."""
    return USERS.get(name, 65532) if rendering.values["pods"].get("user") else None


def restricted(pod, user):
    """Checks the Pod Security Standard "restricted", and more."""
    context = pod["securityContext"]
    if pod.get("automountServiceAccountToken") is not False:
        yield "mounts the token of its service account"
    if pod.get("enableServiceLinks") is not False:
        yield "gets a variable for each Service, which may collide with Assay's"
    ids = {context.get(field) for field in ["runAsUser", "runAsGroup", "fsGroup"]}
    if context["runAsNonRoot"] is not True or ids != {user}:
        yield f"does not run as the user {user}"
    if context["seccompProfile"] != {"type": "RuntimeDefault"}:
        yield "may use every system call"
    for field in ["hostNetwork", "hostPID", "hostIPC", "ephemeralContainers"]:
        if field in pod:
            yield f"has {field}"
    allowed = {"emptyDir", "projected", "secret", "configMap", "persistentVolumeClaim"}
    for volume in pod.get("volumes", []):
        if not set(volume) - {"name"} <= allowed:
            yield f"has the volume {volume['name']} of a kind that is not allowed"
        if "emptyDir" in volume and not volume["emptyDir"].get("sizeLimit"):
            yield f"has the volume {volume['name']} without a size limit"
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        may = container["securityContext"]
        if may != {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }:
            yield f"has privileges: {may}"
        if {"cpu", "memory", "ephemeral-storage"} - set(container["resources"]["requests"]):
            yield "does not request CPU, memory and ephemeral storage"
        if set(container["resources"]["limits"]) != {"memory"}:
            yield "must have a limit of memory only"
        if any("hostPort" in port for port in container.get("ports", [])):
            yield "uses a port of its node"


def stopping(pod):
    """Checks the time to stop: a program takes up to 25 seconds after preStop."""
    for container in pod["containers"]:
        pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds")
        if pause and pod["terminationGracePeriodSeconds"] < pause + 30:
            yield "is killed before it has stopped"


def references(rendering, labels, pod):
    accounts = {found["metadata"]["name"] for found in rendering.of_kind("ServiceAccount")}
    if pod.get("serviceAccountName") not in accounts:
        yield f"has the unknown service account {pod.get('serviceAccountName')}"
    configs = {found["metadata"]["name"] for found in rendering.of_kind("ConfigMap")}
    configs.add(rendering.values["trustedCertificates"]["configMapName"])
    made = rendering.secrets()
    for certificate in rendering.of_kind("Certificate"):
        made[certificate["spec"]["secretName"]] = dict.fromkeys(["tls.crt", "tls.key", "ca.crt"])
    for volume in pod.get("volumes", []):
        if "configMap" in volume and volume["configMap"]["name"] not in configs:
            yield f"mounts an unknown ConfigMap: {volume['configMap']['name']}"
        for name, items in secrets(volume):
            if name not in made and name not in str(rendering.values):
                yield f"mounts the Secret {name}, which is neither generated nor named in values"
            for item in items:
                if name in made and item["key"] not in made[name]:
                    yield f"mounts {item['key']} of the Secret {name}, which has no such key"
    yield from mounts(pod)
    # The names of options and of variables whose values are read from files.
    named = re.compile("password_file|admin-password|pgpassword")
    if "password" in named.sub("", str(pod.get("containers")).lower()):
        yield "seems to contain a password"


def secrets(volume):
    """Yields the Secrets in a volume, with their items."""
    for source in volume.get("projected", {}).get("sources", []):
        if "secret" in source:
            yield source["secret"]["name"], source["secret"]["items"]
    if "secret" in volume:
        yield volume["secret"]["secretName"], volume["secret"].get("items", [])


def mounts(pod):
    """Checks that what containers mount and read exists, and the other way round."""
    files = {
        volume["name"]: {item["path"] for _, items in secrets(volume) for item in items}
        for volume in pod.get("volumes", [])
    }
    mounted = set()
    for container in [*pod.get("initContainers", []), *pod["containers"]]:
        ports = {port["name"] for port in container.get("ports", [])}
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"]:
            port = container.get(probe, {}).get("httpGet", {}).get("port")
            if port and port not in ports:
                yield f"is probed at the unknown port {port}"
        paths = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", [])}
        mounted |= set(paths)
        there = {f"{paths[name]}/{file}" for name in set(paths) & set(files) for file in files[name]}
        read = {
            variable["value"]
            for variable in container.get("env", [])
            if variable["name"].endswith("_FILE") and not variable["name"].startswith("POSTGRES_")
        }
        for file in read - there:
            # An agent writes these files.
            if not file.startswith("/vault/secrets/"):
                yield f"reads {file}, which is not mounted"
        # Certificates are referred to by URLs.
        for file in there - read if read else set():
            if not file.endswith(".crt"):
                yield f"does not read {file}, which is mounted"
    # The token of a service account is for an agent that is injected.
    tokens = {
        volume["name"]
        for volume in pod.get("volumes", [])
        if any("serviceAccountToken" in s for s in volume.get("projected", {}).get("sources", []))
    }
    if mounted | tokens != set(files):
        yield "has a volume that it does not mount, or mounts one that it does not have"


def targets(rendering):
    """Checks that selectors and references to other objects match."""
    pods = [labels for _, labels, _ in rendering.pods()]
    deployments = {found["metadata"]["name"] for found in rendering.of_kind("Deployment")}
    services = {
        found["metadata"]["name"]: {port["name"]: port for port in found["spec"]["ports"]}
        for found in rendering.of_kind("Service")
    }

    def selects(selector):
        return any(selector.items() <= labels.items() for labels in pods)

    for found in rendering.of_kind("Service"):
        if not selects(found["spec"]["selector"]):
            yield f"the Service {found['metadata']['name']} has no pods"
    for found in rendering.of_kind("PodDisruptionBudget"):
        if not selects(found["spec"]["selector"]["matchLabels"]):
            yield f"the PodDisruptionBudget {found['metadata']['name']} has no pods"
    for found in rendering.of_kind("HorizontalPodAutoscaler"):
        target = found["spec"]["scaleTargetRef"]["name"]
        if target not in deployments:
            yield f"an autoscaler refers to the unknown Deployment {target}"
        for deployment in rendering.of_kind("Deployment"):
            if deployment["metadata"]["name"] == target and "replicas" in deployment["spec"]:
                yield f"{target} has an autoscaler and a fixed number of replicas"
    backends = [
        path["backend"]["service"]["name"]
        for found in rendering.of_kind("Ingress")
        for rule in found["spec"]["rules"]
        for path in rule["http"]["paths"]
    ] + [
        backend["name"]
        for found in rendering.of_kind("HTTPRoute")
        for rule in found["spec"]["rules"]
        for backend in rule["backendRefs"]
    ]
    for backend in backends:
        if "http" not in services.get(backend, {}):
            yield f"a route leads to {backend}, which does not serve HTTP"
