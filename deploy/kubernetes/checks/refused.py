"""Values that cannot be, and what whoever gives them is to read."""

from helm_python import HelmError

from .chart import render, values_files

REFUSED = [
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
    ({"postgresql": {"bundled": False}}, "databases.catalog.ownerUrl has to name the Secret"),
    (
        {"databases": {"catalog": {"url": {"secretName": "a", "secretKey": "b"}}}},
        "set postgresql.bundled to false",
    ),
    ({"nats": {"bundled": False}}, "nats.urls.gateway, or nats.url, has to say where NATS is"),
    ({"nats": {"url": "nats://nats:4222"}}, "set nats.bundled to false"),
    ({"execution": {"replicas": 2}}, "several replicas of execution need artifacts.store: s3"),
    ({"artifacts": {"store": "s3"}}, "artifacts.s3.bucket has to be set"),
    (
        {
            "artifacts": {
                "store": "s3",
                "s3": {"bucket": "a", "accessKeyId": {"secretName": "a", "secretKey": "b"}},
            }
        },
        "have to be set both, or neither",
    ),
    (
        {"mail": {"smtpUrl": {"secretName": "mail", "secretKey": "url"}}},
        "mail.from has to say who mails are from",
    ),
    (
        {"gateway": {"terminationGracePeriodSeconds": 30}},
        "gateway.terminationGracePeriodSeconds has to be 30 more than preStopSeconds",
    ),
    (
        {"catalog": {"autoscaling": {"minReplicas": 9}}},
        "catalog.autoscaling.minReplicas is greater than maxReplicas",
    ),
    ({"ingress": {"enabled": True}}, "ingress.hosts has to name the hosts"),
    ({"httpRoute": {"enabled": True}}, "httpRoute.parentRefs has to name the Gateways"),
]


def check(_):
    for values, expected in REFUSED:
        try:
            render(values)
            yield f"{values} is taken"
        except HelmError as error:
            if expected not in str(error):
                yield f"{values} is refused with “{error}”, which does not say “{expected}”"

    for name in ["1st", "quality.tests"]:
        try:
            render({}, name=name)
            yield f"a release may be called {name}"
        except HelmError as error:
            if f"Services cannot be called {name}-" not in str(error):
                yield f"a release {name} is refused with “{error}”"

    # Every object in the values has a list of what may be in it.
    for path in values_files()["everything"]:
        try:
            render({path: {"nonsense": True}})
            yield f"{path}.nonsense is taken"
        except HelmError as error:
            if "nonsense" not in str(error) and path not in str(error):
                yield f"{path}.nonsense is refused with “{error}”"
