"""Validates objects against the schemas of Kubernetes and of its extensions."""

import functools

import jsonschema
import kubernetes_validate
from kubernetes_validate import utils

# Read each schema once, not for each object.
utils.schema_contents = functools.cache(utils.schema_contents)

# The oldest version that the chart allows (kubeVersion), and the newest with a schema.
VERSIONS = ["1.30", "1.37"]

ANY = {"type": "object"}


def strictly(**properties):
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


# Schemas of the custom resources, limited to the fields that the chart uses, after their definitions: monitoring.coreos.com/v1, gateway.networking.k8s.io/v1 and cert-manager.io/v1.
RULE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["alert", "expr", "annotations", "labels"],
    "properties": {
        "alert": {"type": "string"},
        "expr": {"type": "string"},
        "for": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}
EXTENSIONS = {
    ("monitoring.coreos.com/v1", "ServiceMonitor"): strictly(
        jobLabel={"type": "string"},
        selector=strictly(matchLabels=ANY),
        endpoints={
            "type": "array",
            "items": strictly(
                port={"type": "string"}, path={"type": "string"}, interval={"type": "string"}
            ),
        },
    ),
    ("monitoring.coreos.com/v1", "PrometheusRule"): strictly(
        groups={
            "type": "array",
            "items": strictly(name={"type": "string"}, rules={"type": "array", "items": RULE}),
        }
    ),
    ("cert-manager.io/v1", "Certificate"): strictly(
        secretName={"type": "string"},
        issuerRef=strictly(
            name={"type": "string"},
            kind={"enum": ["Issuer", "ClusterIssuer"]},
            group={"type": "string"},
        ),
        dnsNames={"type": "array", "minItems": 1, "items": {"type": "string"}},
        usages={
            "type": "array",
            "items": {"enum": ["digital signature", "server auth", "client auth"]},
        },
        privateKey=strictly(
            algorithm={"enum": ["RSA", "ECDSA", "Ed25519"]},
            size={"type": "integer"},
            rotationPolicy={"enum": ["Never", "Always"]},
        ),
        duration={"type": "string"},
        renewBefore={"type": "string"},
    ),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): strictly(
        parentRefs={"type": "array", "minItems": 1, "items": ANY},
        hostnames={"type": "array", "items": {"type": "string"}},
        rules={
            "type": "array",
            "items": strictly(
                matches={
                    "type": "array",
                    "items": strictly(
                        path=strictly(type={"enum": ["PathPrefix"]}, value={"type": "string"})
                    ),
                },
                backendRefs={
                    "type": "array",
                    "items": strictly(name={"type": "string"}, port={"type": "integer"}),
                },
            ),
        },
    ),
}


def check(renderings):
    for rendering in renderings:
        yield from problems(rendering)
    rendered = {
        (found["apiVersion"], found["kind"]) for one in renderings for found in one.objects
    }
    for missing in EXTENSIONS.keys() - rendered:
        yield f"none of the values files renders a {missing[1]}"


def problems(rendering):
    """Yields the differences between the objects of a rendering and their schemas."""
    for found in rendering.objects:
        who = f"{rendering.name}: {found['kind']} {found['metadata']['name']}"
        if found["metadata"].get("namespace") != "quality":
            yield f"{who} does not name the release's namespace"
        extension = EXTENSIONS.get((found["apiVersion"], found["kind"]))
        if extension:
            for error in jsonschema.Draft7Validator(extension).iter_errors(found["spec"]):
                yield f"{who}: {error.json_path}: {error.message}"
            continue
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(found, version, strict=True)
            except Exception as error:  # The library raises several types; each is a problem.
                yield f"{who}: {version}: {str(error).splitlines()[0]}"
