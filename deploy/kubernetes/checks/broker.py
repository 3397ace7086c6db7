"""The bundled NATS runs with its configuration: with and without TLS, each subscriber reads with its own
consumer and no other."""

import contextlib
import json
import pathlib
import socket
import ssl
import subprocess
import tempfile
import time

from .chart import render
from .programs import skipped
from .trial import free_port, nats_server

SUBSCRIBERS = ["billing", "data-lake"]
STREAM = "ASSAY_NOTIFICATIONS"
PATIENCE = 20  # seconds


def check(_):
    if not nats_server():
        yield from skipped("started", ["nats-server"])
        return
    for has_tls in [False, True]:
        values = {"subscribers": [{"name": name} for name in SUBSCRIBERS]}
        values |= {"tls": {"secretName": "nats-certificate"}} if has_tls else {}
        secrets = render({"nats": values}).secrets()
        with tempfile.TemporaryDirectory() as folder, server(secrets, pathlib.Path(folder)) as port:
            authority = f"{folder}/tls.crt" if has_tls else None
            clients = {
                user: Client(port, user, secrets["assay-nats"][user], authority)
                for user in ["operator", *SUBSCRIBERS]
            }
            for problem in reading(clients):
                yield f"{'with' if has_tls else 'without'} TLS: {problem}"
        scheme = "tls" if has_tls else "nats"
        if not secrets["assay-catalog"]["nats-url"].startswith(f"{scheme}://catalog:"):
            yield f"programs do not use {scheme}://"
    for subject in ["API.CONSUMER.INFO", "API.CONSUMER.MSG.NEXT", "ACK"]:
        with tempfile.TemporaryDirectory() as folder:
            yield from stealing(subject, secrets, pathlib.Path(folder))


@contextlib.contextmanager
def server(secrets, folder):
    """Runs a server with the configuration in the Secret, and yields its port."""
    config = secrets["assay-nats"]["nats-server.conf"]
    config = config.replace("http_port: 8222\n", f"http_port: {free_port()}\n")
    config = config.replace("/run/certificates/nats", str(folder))
    (folder / "nats-server.conf").write_text(config)
    request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=nats", "-addext", "subjectAltName=DNS:assay-nats"]
    files = ["-keyout", folder / "tls.key", "-out", folder / "tls.crt"]
    subprocess.run(["openssl", *request, *names, *files], check=True, capture_output=True)
    port = free_port()
    options = ["--addr", "127.0.0.1", "--port", str(port), "--config", folder / "nats-server.conf"]
    command = [nats_server(), "--jetstream", "--store_dir", folder / "store", *options]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE
        while "Server is ready" not in (folder / "log").read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit((folder / "log").read_text())
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait(PATIENCE)


def reading(clients):
    """Sends requests of the operator and of subscribers."""
    operator = clients["operator"]
    stream = {"name": STREAM, "subjects": ["assay.notifications.>"], "storage": "file"}
    operator.ask(f"$JS.API.STREAM.CREATE.{STREAM}", stream)
    for name in SUBSCRIBERS:
        consumer = {"durable_name": name, "ack_policy": "explicit", "deliver_policy": "all"}
        body = {"stream_name": STREAM, "config": consumer}
        operator.ask(f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{name}", body)
    operator.ask("assay.notifications.x", {"a": "notification"})
    for name, client in ((name, clients[name]) for name in SUBSCRIBERS):
        at = "$JS.ASSAY.API.CONSUMER"
        for other in SUBSCRIBERS:
            info = client.ask(f"{at}.INFO.{STREAM}.{other}")
            if (info is not None) != (other == name):
                yield f"{name} gets {info} about the consumer {other}"
            message = client.ask(f"{at}.MSG.NEXT.{STREAM}.{other}")
            if (message == {"a": "notification"}) != (other == name):
                yield f"{name} reads {message} with the consumer {other}"
        for subject in [f"$JS.API.STREAM.INFO.{STREAM}", "assay.notifications.x"]:
            reply = client.ask(subject, {"forged": name}) or {}
            if reply.get("error", {}).get("description") != "JetStream not enabled for account" and reply:
                yield f"{name} gets {reply} for {subject}"
    state = operator.ask(f"$JS.API.STREAM.INFO.{STREAM}")["state"]
    if state["messages"] != 1:
        yield f"subscribers have published messages: {state}"


def stealing(subject, secrets, folder):
    """Lets the account of one subscriber import a subject of the other's consumer."""
    config = secrets["assay-nats"]["nats-server.conf"]
    one, other = (f'subject: "$JS.{subject}.{STREAM}.{name}' for name in SUBSCRIBERS)
    stolen = {"assay-nats": {"nats-server.conf": config.replace(other, one)}}
    try:
        with server(stolen, folder):
            yield f"the server accepts an account that imports {subject} of another"
    except SystemExit as error:
        if "import" not in str(error):
            raise


class Client:
    """A client of NATS, for one request at a time."""

    def __init__(self, port, user, password, authority):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.inbox = f"_INBOX_assay.{user}"
        information = json.loads(self.line().removeprefix("INFO "))
        if information.get("tls_required", False) != bool(authority):
            raise SystemExit(f"the server does not require what is configured: {information}")
        if authority:
            context = ssl.create_default_context(cafile=authority)
            self.socket = context.wrap_socket(self.socket, server_hostname="assay-nats")
        login = {"user": user, "pass": password, "verbose": False, "pedantic": False}
        login |= {"headers": True, "no_responders": True, "lang": "python", "version": "0"}
        self.send(f"CONNECT {json.dumps(login)}", f"SUB {self.inbox} 1", "PING")
        if (answer := self.line()) != "PONG":
            raise SystemExit(f"{user} cannot connect: {answer}")

    def send(self, *lines):
        self.socket.sendall("".join(f"{line}\r\n" for line in lines).encode())

    def line(self):
        """Reads a line, byte by byte, since TLS begins after the first one."""
        found = b""
        while not found.endswith(b"\r\n"):
            if not (byte := self.socket.recv(1)):
                raise SystemExit(f"the server has closed the connection after {found}")
            found += byte
        return found.decode().strip()

    def ask(self, subject, body=None):
        """Returns the reply, or None if nobody replies."""
        text = json.dumps(body) if body is not None else ""
        self.send(f"PUB {subject} {self.inbox} {len(text)}", text, "PING")
        while True:
            words = self.line().split()
            if words[0] in ["MSG", "HMSG"]:
                size, payload = int(words[-1]), b""
                while len(payload) < size + 2:
                    payload += self.socket.recv(size + 2 - len(payload))
                if words[0] == "HMSG":
                    return None
                return json.loads(payload) if size > 2 else None
            if words[0] == "-ERR":
                return None
