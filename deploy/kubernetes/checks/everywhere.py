"""Values for all pods reach all of them, those for programs and tasks reach these, and certificates of
authorities the programs."""

from .chart import PROGRAMS, component, own_values

SERVERS = ["postgresql", "nats", "test"]


def check(renderings):
    for rendering in renderings:
        for found, metadata, pod in rendering.templates():
            name = component(metadata["labels"])
            own = own_values(rendering.values, name)
            for problem in [
                *placement(rendering.values["pods"], own, metadata, pod),
                *additions(rendering.values["pods"], own, name, pod),
                *authorities(rendering.values, name, pod),
                *spread(rendering.values["pods"]["spread"], found, pod),
            ]:
                yield f"{rendering.name}: {found['kind']} {found['metadata']['name']} {problem}"


def placement(pods, own, metadata, pod):
    """Checks that nothing for all pods is missing in a pod."""
    for field in ["labels", "annotations"]:
        wanted = {**pods[field], **own.get(f"pod{field.title()}", {})}
        for key in wanted.keys() - {k for k, v in wanted.items() if metadata.get(field, {}).get(k) == v}:
            yield f"lacks {key} in its {field}"
    for field in ["priorityClassName", "runtimeClassName", "nodeSelector", "tolerations", "dnsConfig"]:
        if pod.get(field) != (pods[field] or None):
            yield f"has another {field}"


def main_container(name, pod):
    """Returns the container that is named like the component; that of a migration is `migrate`."""
    containers = [*pod.get("initContainers", []), *pod["containers"]]
    named = {container["name"]: container for container in containers}
    return named["migrate" if name.endswith("-migrate") else name]


def additions(pods, own, name, pod):
    """Checks the volumes, variables and containers that values add."""

    def added(field):
        return [] if name in SERVERS else [*pods[field], *own.get(field, [])]

    main = main_container(name, pod)
    for field, there in [
        ("extraVolumes", pod.get("volumes", [])),
        ("extraVolumeMounts", main.get("volumeMounts", [])),
        ("initContainers", pod.get("initContainers", [])),
        ("extraContainers", pod["containers"]),
    ]:
        wanted = added(field) if field != "extraContainers" or name in PROGRAMS else []
        for one in wanted:
            if one not in there:
                yield f"lacks {one['name']} of {field}"
        others = {one["name"] for one in [*pods[field], *own.get(field, [])] if one not in wanted}
        for one in others & {one["name"] for one in there}:
            yield f"has {one} of {field}"
    variables = main.get("env", [])
    if len(variables) != len({variable["name"] for variable in variables}):
        yield "has two variables with one name"
    for name in {variable["name"] for variable in added("extraEnv")}:
        last = [variable for variable in added("extraEnv") if variable["name"] == name][-1]
        if last not in variables:
            yield f"does not get its own {name}"


def authorities(values, name, pod):
    """Checks that programs read the system's certificates and those of `trustedCertificates`."""
    trusted = values["trustedCertificates"]
    folders = [
        mount["mountPath"]
        for mount in main_container(name, pod).get("volumeMounts", [])
        if mount["name"] == "certificates"
    ]
    variables = {found["name"]: found.get("value") for found in main_container(name, pod).get("env", [])}
    wanted = name in PROGRAMS and bool(trusted["configMapName"] or trusted["secretName"])
    if wanted and variables.get("SSL_CERT_DIR") != ":".join(["/etc/ssl/certs", *folders]):
        yield "does not trust the certificates"
    if wanted != bool(folders) and name != "nats":
        yield "mounts certificates without need, or does not mount them"


def spread(wanted, found, pod):
    if found["kind"] != "Deployment":
        return
    rules = {
        rule["topologyKey"]: rule["whenUnsatisfiable"] for rule in pod["topologySpreadConstraints"]
    }
    keys = {"topology.kubernetes.io/zone": "zones", "kubernetes.io/hostname": "nodes"}
    if rules != {key: wanted[name] for key, name in keys.items()}:
        yield f"is spread by {rules}"
