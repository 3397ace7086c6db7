"""Starts the programs, if they are built, on this machine as the chart would start them in pods: with the
variables, files, roles and NATS configuration of a bundled installation."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from .chart import FOLDER, PROGRAMS, component, render
from .pods import secrets
from .programs import TARGET, built, skipped

PATIENCE = 60  # seconds


def check(_):
    servers = TARGET / "debug/with-servers"
    nats = nats_server()
    missing = [f"assay-{program}" for program in PROGRAMS if not built(program)]
    missing += [] if built("assay") else ["assay"]
    missing += [] if servers.exists() else ["with-servers"]
    missing += [] if nats else ["nats-server"]
    if missing:
        yield from skipped("tried", missing)
        return
    command = [servers, sys.executable, "-B", "-m", "checks.trial"]
    tried = subprocess.run(command, cwd=FOLDER.parent, capture_output=True, text=True)
    if tried.returncode:
        yield f"{tried.stdout[-2000:]}\n{tried.stderr[-4000:]}"


def nats_server():
    return shutil.which("nats-server", path=f"{os.environ['PATH']}:/usr/sbin")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Trial:
    """Stands in for a cluster: a folder for each pod, and a local port for each port of a Service."""

    def __init__(self, rendering, folder):
        self.rendering, self.folder = rendering, folder
        self.secrets = rendering.secrets()
        self.ports = {}
        server = urllib.parse.urlsplit(os.environ["ASSAY_TEST_DATABASE_URL"])
        self.socket = urllib.parse.parse_qs(server.query)["host"][0]
        self.superuser, self.postgres = server.username, server.port
        self.running = []

    def port(self, host, port):
        return self.ports.setdefault((host, int(port)), free_port())

    def here(self, text, name):
        """Converts a value or a file of a pod to this machine."""
        there = f"?host={self.socket}&sslmode=disable"
        text = re.sub(
            r"@assay-postgresql:5432/(\w+)", rf"@localhost:{self.postgres}/\1{there}", text
        )
        text = re.sub(
            r"\bassay-(\w+):(\d+)", lambda found: f"127.0.0.1:{self.port(found[1], found[2])}", text
        )
        text = re.sub(
            r"^0\.0\.0\.0:(\d+)$", lambda found: f"127.0.0.1:{self.port(name, found[1])}", text
        )
        return re.sub(r"^/(run|tmp|var)/", rf"{self.folder}/{name}/\1/", text)

    def pod(self, name):
        """Returns the arguments and variables of a pod, and writes its files."""
        pods = {component(labels): pod for _, labels, pod in self.rendering.pods()}
        pod = pods[name]
        for volume in pod["volumes"]:
            for secret, items in secrets(volume):
                for item in items:
                    file = pathlib.Path(self.here(f"/run/secrets/assay/{item['path']}", name))
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(self.here(self.secrets[secret][item["key"]], name))
        container = pod["containers"][0]
        variables = {found["name"]: self.here(found["value"], name) for found in container["env"]}
        return container.get("args", []), {**os.environ, **variables}

    def make_databases(self):
        secrets = self.folder / "postgresql"
        secrets.mkdir(parents=True)
        for key, value in self.secrets["assay-postgresql"].items():
            (secrets / key).write_text(value)
        env = {
            **os.environ,
            "SECRETS": str(secrets),
            "PGHOST": self.socket,
            "PGPORT": str(self.postgres),
            "POSTGRES_USER": self.superuser,
        }
        script = next(found for found in self.rendering.of_kind("ConfigMap"))["data"]["init.sh"]
        subprocess.run(["bash", "-c", script], env=env, check=True)

    def make_certificates(self):
        """Issues a certificate for each program from one authority, as cert-manager would."""
        folder = self.folder / "certificates"
        folder.mkdir()

        def openssl(*arguments):
            subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=ca")
        for program in PROGRAMS:
            names = f"subjectAltName=DNS:assay-{program},IP:127.0.0.1"
            is_leaf = "basicConstraints=CA:FALSE"
            request = ["-subj", f"/CN={program}", "-addext", names, "-addext", is_leaf]
            signed_by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-x509"]
            openssl("req", *key, "-keyout", "tls.key", "-out", "tls.crt", *request, *signed_by)
            files = ["tls.crt", "tls.key", "ca.crt"]
            self.secrets[f"assay-{program}-tls"] = {
                name: (folder / name).read_text() for name in files
            }

    def start(self, command, env=None):
        log = open(self.folder / f"{len(self.running)}.log", "w")
        self.running.append((subprocess.Popen(command, env=env, stdout=log, stderr=log), log.name))

    def start_nats(self):
        config = self.folder / "nats-server.conf"
        text = self.secrets["assay-nats"]["nats-server.conf"]
        config.write_text(text.replace("8222", str(self.port("nats", 8222))))
        port = str(self.port("nats", 4222))
        self.start(
            [
                nats_server(),
                "--jetstream",
                "--store_dir",
                self.folder / "nats",
                "--addr",
                "127.0.0.1",
                "--port",
                port,
                "--config",
                config,
            ]
        )
        self.eventually(f"http://127.0.0.1:{self.port('nats', 8222)}/healthz?js-server-only=true")

    def migrate(self, service):
        arguments, env = self.pod(f"{service}-migrate")
        subprocess.run([built(service), *arguments], env=env, check=True, timeout=PATIENCE)

    def sql(self, service, owner, statement):
        """Returns whether a role of a service's database may run the statement."""
        role = f"assay_{service}{'_owner' if owner else ''}"
        command = [
            "psql",
            "--no-psqlrc",
            "-qAt",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            self.socket,
            "-p",
            str(self.postgres),
            "-U",
            role,
            "-d",
            f"assay_{service}",
            "-c",
            statement,
        ]
        return subprocess.run(command, capture_output=True).returncode == 0

    def eventually(self, url, expected=200):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    if answer.status == expected:
                        return answer.read().decode()
                    last = answer.status
            except (OSError, urllib.error.URLError) as error:
                last = error
            ended = [log for process, log in self.running if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise SystemExit(f"{url}: {last}\n" + "\n".join(self.logs()))
            time.sleep(0.1)

    def logs(self, last=1500):
        return [
            f"{process.args[0]}: {pathlib.Path(log).read_text()[-last:]}"
            for process, log in self.running
        ]

    def stop(self):
        """Stops everything in reverse order; Assay's programs have to exit with 0."""
        for process, log in reversed(self.running):
            process.send_signal(signal.SIGTERM)
            if process.wait(timeout=PATIENCE) and "assay-" in str(process.args[0]):
                raise SystemExit(f"{process.args[0]} ended with {process.returncode}: {log}")


def main():
    values = {"tls": {"enabled": True}}
    trial = Trial(render(values), pathlib.Path(os.environ["ASSAY_TEST_DIR"]) / "trial")
    services = [program for program in PROGRAMS if program != "gateway"]
    trial.make_databases()
    trial.make_certificates()
    trial.start_nats()
    try:
        for service in services:
            trial.migrate(service)
            assert trial.sql(service, True, "select count(*) from outbox"), (
                f"{service}: the owner cannot read the tables"
            )
            assert trial.sql(service, False, "select count(*) from outbox"), (
                f"{service}: the role cannot read the tables"
            )
            for other in set(services) - {service}:
                command = [
                    "psql",
                    "-qAt",
                    "-h",
                    trial.socket,
                    "-p",
                    str(trial.postgres),
                    "-U",
                    f"assay_{service}",
                    "-d",
                    f"assay_{other}",
                    "-c",
                    "select 1",
                ]
                assert subprocess.run(command, capture_output=True).returncode, (
                    f"{service} can connect to the database of {other}"
                )
            for statement in [
                "create table mine ()",
                "drop table outbox",
                "alter table outbox add x int",
            ]:
                assert not trial.sql(service, False, statement), (
                    f"{service}: the role may run {statement}"
                )
        for program in PROGRAMS:
            arguments, env = trial.pod(program)
            trial.start([built(program), *arguments], env)
        for program in PROGRAMS:
            trial.eventually(f"http://127.0.0.1:{trial.port(program, 9090)}/readyz")
        use(trial)
        for command in ["rebuild", "verify"]:
            arguments, env = trial.pod(command)
            subprocess.run([built("assay"), *arguments], env=env, check=True, timeout=PATIENCE)
    finally:
        with contextlib.suppress(Exception):
            print("\n".join(trial.logs()))
        trial.stop()


def use(trial):
    """Requests the token keys as `helm test` does, logs in, writes, and waits for the notification."""
    gateway = f"http://127.0.0.1:{trial.port('gateway', 8080)}"
    assert '"kty"' in trial.eventually(f"{gateway}/.well-known/jwks.json")
    login = {
        "Email": trial.rendering.values["admin"]["email"],
        "Password": trial.secrets["assay-identity"]["admin-password"],
    }
    token = json.loads(ask(f"{gateway}/api/token/login", login))["token"]
    project = json.loads(
        ask(f"{gateway}/api/projects", {"Name": "A trial", "Description": ""}, token)
    )
    # The event travels from the catalog to the notification service through NATS.
    deadline = time.monotonic() + PATIENCE
    while project["Id"] not in notifications(gateway, token):
        assert time.monotonic() < deadline, "the notification of a new project is missing"
        time.sleep(0.1)
    for line in "\n".join(trial.logs(last=0)).splitlines():
        assert '"level":"ERROR"' not in line, line


def notifications(gateway, token):
    """Returns the body of the list, or nothing while the gateway connects to a service that has just
    started."""
    try:
        return ask(f"{gateway}/api/notifications", token=token)
    except urllib.error.HTTPError as error:
        if error.code != 503:
            raise
        return ""


def ask(url, body=None, token=None):
    headers = {"Content-Type": "application/json", "Authentication": f"Bearer {token}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


if __name__ == "__main__":
    main()
