"""Pods: their privileges, and whether their references exist."""

from .chart import component

# Users of the bundled servers' images; Assay's own is 65532.
USERS = {"postgresql": 999}


def check(renderings):
    for rendering in renderings:
        for name, labels, pod in rendering.pods():
            for problem in [
                *restricted(pod, USERS.get(component(labels), 65532)),
                *stopping(pod),
                *references(rendering, labels, pod),
            ]:
                yield f"{rendering.name}: {name} {problem}"
        yield from (f"{rendering.name}: {problem}" for problem in targets(rendering))


def restricted(pod, user):
    """Checks the Pod Security Standard "restricted", and more."""
    context = pod["securityContext"]
    if pod.get("automountServiceAccountToken") is not False:
        yield "mounts the token of its service account"
    if pod.get("enableServiceLinks") is not False:
        yield "gets a variable for each Service, which may collide with Assay's"
    if (context["runAsNonRoot"], context["runAsUser"]) != (True, user):
        yield "does not run as its own user"
    if context["seccompProfile"] != {"type": "RuntimeDefault"}:
        yield "may use every system call"
    for field in ["hostNetwork", "hostPID", "hostIPC", "initContainers", "ephemeralContainers"]:
        if field in pod:
            yield f"has {field}"
    allowed = {"emptyDir", "projected", "secret", "configMap", "persistentVolumeClaim"}
    for volume in pod.get("volumes", []):
        if not set(volume) - {"name"} <= allowed:
            yield f"has the volume {volume['name']} of a kind that is not allowed"
        if "emptyDir" in volume and not volume["emptyDir"].get("sizeLimit"):
            yield f"has the volume {volume['name']} without a size limit"
    for container in pod["containers"]:
        may = container["securityContext"]
        if may != {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }:
            yield f"has privileges: {may}"
        if {"cpu", "memory"} - set(container["resources"]["requests"]):
            yield "does not request CPU and memory"
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
    made = rendering.secrets()
    for certificate in rendering.of_kind("Certificate"):
        made[certificate["spec"]["secretName"]] = dict.fromkeys(["tls.crt", "tls.key", "ca.crt"])
    configs = {found["metadata"]["name"] for found in rendering.of_kind("ConfigMap")}
    accounts = {found["metadata"]["name"] for found in rendering.of_kind("ServiceAccount")}
    if pod.get("serviceAccountName", "default") not in accounts | {"default"}:
        yield "has an unknown service account"
    files = {}
    for volume in pod.get("volumes", []):
        if "configMap" in volume and volume["configMap"]["name"] not in configs:
            yield f"mounts an unknown ConfigMap: {volume['configMap']['name']}"
        sources = [source["secret"] for source in volume.get("projected", {}).get("sources", [])]
        if "secret" in volume:
            secret = volume["secret"]
            sources.append({"name": secret["secretName"], "items": secret.get("items", [])})
        for source in sources:
            name = source["name"]
            if name not in made and name not in str(rendering.values):
                yield f"mounts the Secret {name}, which is neither generated nor named in values"
            for item in source["items"]:
                files.setdefault(volume["name"], set()).add(item["path"])
                if name in made and item["key"] not in made[name]:
                    yield f"mounts {item['key']} of the Secret {name}, which has no such key"
    for container in pod["containers"]:
        ports = {port["name"] for port in container.get("ports", [])}
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"]:
            port = container.get(probe, {}).get("httpGet", {}).get("port")
            if port and port not in ports:
                yield f"is probed at the unknown port {port}"
        mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", [])}
        if set(mounts) != {volume["name"] for volume in pod.get("volumes", [])}:
            yield "has a volume that it does not mount, or mounts one that it does not have"
        there = {f"{mounts[name]}/{path}" for name, paths in files.items() for path in paths}
        read = {
            variable["value"]
            for variable in container.get("env", [])
            if variable["name"].startswith("ASSAY_") and variable["name"].endswith("_FILE")
        }
        for file in read - there:
            yield f"reads {file}, which is not mounted"
        # Certificates are referred to by URLs.
        for file in there - read if read else set():
            if not file.endswith(".crt"):
                yield f"does not read {file}, which is mounted"
    if "password" in str(pod.get("containers")).lower().replace("password_file", "").replace(
        "admin-password", ""
    ):
        yield "seems to contain a password"


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
