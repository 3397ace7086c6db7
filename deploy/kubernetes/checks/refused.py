"""Invalid values are rejected, with a message that names the value and the remedy."""

from helm_python import HelmError

from .chart import render, values_files

INVALID = [
    ({"gatway": {}}, "additional properties 'gatway' not allowed"),
    ({"gateway": {"replica": 3}}, "at '/gateway': additional properties 'replica' not allowed"),
    ({"gateway": {"replicas": "3"}}, "at '/gateway/replicas': got string, want integer"),
    ({"publicUrl": "assay.example.org"}, "at '/publicUrl'"),
    ({"image": {"pullPolicy": "Sometimes"}}, "at '/image/pullPolicy'"),
    ({"gateway": {"image": {"digest": "latest"}}}, "at '/gateway/image/digest'"),
    ({"postgresql": {"password": "secret"}}, "additional properties 'password' not allowed"),
    ({"nats": {"url": "nats://user:secret@nats:4222"}}, "at '/nats/url'"),
    (
        {"mail": {"smtpUrl": "smtps://user:secret@host"}},
        "at '/mail/smtpUrl': got string, want object",
    ),
    ({"admin": {"password": {"secretName": "admin"}}}, "at '/admin/password/secretKey'"),
    ({"gateway": {"trustedProxies": ["proxy.example.org"]}}, "at '/gateway/trustedProxies/0'"),
    ({"postgresql": {"bundled": False}}, "databases.catalog.ownerUrl must name the Secret or the file"),
    (
        {"databases": {"catalog": {"url": {"secretName": "a", "secretKey": "b"}}}},
        "set postgresql.bundled to false",
    ),
    ({"nats": {"bundled": False}}, "nats.urls.gateway or nats.url must be set"),
    ({"nats": {"url": "nats://nats:4222"}}, "set nats.bundled to false"),
    ({"catalog": {"replicas": 2}}, "several replicas of catalog need artifacts.store: s3"),
    ({"execution": {"replicas": 2}}, "several replicas of execution need artifacts.store: s3"),
    ({"artifacts": {"store": "s3"}}, "artifacts.s3.bucket must be set"),
    (
        {
            "artifacts": {
                "store": "s3",
                "s3": {"bucket": "a", "accessKeyId": {"secretName": "a", "secretKey": "b"}},
            }
        },
        "must be set together",
    ),
    (
        {"mail": {"smtpUrl": {"secretName": "mail", "secretKey": "url"}}},
        "mail.from must be set",
    ),
    (
        {"gateway": {"terminationGracePeriodSeconds": 30}},
        "gateway.terminationGracePeriodSeconds must exceed preStopSeconds by at least 30",
    ),
    (
        {"catalog": {"autoscaling": {"minReplicas": 9}}},
        "catalog.autoscaling.minReplicas must not exceed maxReplicas",
    ),
    (
        {"catalog": {"autoscaling": {"targetCPU": 0}}},
        "catalog.autoscaling needs metrics if targetCPU is 0",
    ),
    ({"nats": {"subscribers": [{"name": "operator"}]}}, "at '/nats/subscribers/0/name'"),
    ({"nats": {"external": {"enabled": True}}}, "nats.external needs the bundled NATS with nats.tls"),
    (
        {"trustedCertificates": {"configMapName": "a", "secretName": "b"}},
        "must name a ConfigMap or a Secret, not both",
    ),
    ({"pods": {"spread": {"zones": "Always"}}}, "at '/pods/spread/zones'"),
    ({"backup": {"enabled": True, "volume": {"enabled": False}}}, "backup needs a volume"),
    ({"databases": {"ca": {"file": "ca.crt"}}}, "at '/databases/ca/file'"),
    ({"ingress": {"enabled": True}}, "ingress.hosts must name the hosts"),
    ({"httpRoute": {"enabled": True}}, "httpRoute.parentRefs must name the Gateways"),
]


def check(_):
    for values, expected in INVALID:
        try:
            render(values)
            yield f"{values} is accepted"
        except HelmError as error:
            if expected not in str(error):
                yield f"{values} is rejected with “{error}”, without “{expected}”"

    for name in ["1st", "quality.tests"]:
        try:
            render({}, name=name)
            yield f"the release name {name} is accepted"
        except HelmError as error:
            if f"{name}-… is not a valid name" not in str(error):
                yield f"the release name {name} is rejected with “{error}”"

    # Every object in the values rejects unknown fields.
    for path in values_files()["everything"]:
        try:
            render({path: {"nonsense": True}})
            yield f"{path}.nonsense is accepted"
        except HelmError as error:
            if "nonsense" not in str(error) and path not in str(error):
                yield f"{path}.nonsense is rejected with “{error}”"
