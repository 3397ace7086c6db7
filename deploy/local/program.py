"""Starts Assay for a measurement, and provides clients for it."""

import http.client
import json
import os
import subprocess
import sys
import time
from urllib.parse import urlsplit

LOGIN = {"Email": "ada@example.org", "Password": "a long enough passphrase"}


def start(program, data, limited=False):
    """Starts a program in an empty directory, with its limits of requests or without them."""
    unlimited = dict(ASSAY_REQUESTS_PER_ADDRESS="0", ASSAY_REQUESTS_PER_CUSTOMER="0")
    environment = dict(
        os.environ,
        ASSAY_DATA_DIR=data,
        ASSAY_HTTP_LISTEN="127.0.0.1:0",
        ASSAY_ADMIN_EMAIL=LOGIN["Email"],
        ASSAY_ADMIN_PASSWORD=LOGIN["Password"],
        **({} if limited else unlimited),
    )
    process = subprocess.Popen([program], env=environment, stdout=subprocess.PIPE, text=True)
    ready = next((line for line in process.stdout if "ready: " in line), None)
    if ready is None:
        sys.exit("assay did not start")
    return process, ready.split("ready: ")[1].strip()


# Seconds after which an idle connection is not reused, since the server closes it.
IDLE = 3


class Client:
    """One user, on one persistent connection."""

    def __init__(self, url, token=None):
        self.url = urlsplit(url)
        self.token = token
        self.connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        self.used = 0.0

    def call(self, method, path, body=None, media_type="application/json"):
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        headers = {"Content-Type": media_type} if data is not None else {}
        if self.token:
            headers["Authentication"] = f"Bearer {self.token}"
        status, text = self.answer(method, path, data, headers)
        if status >= 300:
            sys.exit(f"{method} {path}: {status} {text[:300]}")
        return json.loads(text) if text else None

    def status(self, method, path):
        """Returns the status, or None if the response breaks off, as a list does while it is deleted."""
        try:
            return self.answer(method, path, None, {"Authentication": f"Bearer {self.token}"})[0]
        except http.client.IncompleteRead:
            self.connection.close()
            return None

    def answer(self, method, path, data, headers):
        """Returns the status and the body of a response."""
        if time.monotonic() - self.used > IDLE:
            self.connection.close()
        self.connection.request(method, self.url.path + path, data, headers)
        with self.connection.getresponse() as answer:
            text = answer.read()
        self.used = time.monotonic()
        return answer.status, text


class Customer:
    """A customer with a project whose test set has one test case, of up to 10,000 instances."""

    def __init__(self, operator, url, name):
        made = operator.call("POST", "/management/customers", {"Name": name, "Subdomain": name})
        self.id = made["Id"]
        token = operator.call("POST", "/token/refine", {"CustomerId": self.id})["token"]
        client = self.client = Client(url, token)
        self.project = "/projects/" + client.call("POST", "/projects", {"Name": name})["Id"]
        case = client.call("POST", f"{self.project}/testcases", {"Name": "Run", "Identifier": "run"})
        self.case = f"{self.project}/testcases/{case['Id']}"
        plan = client.call("POST", f"{self.case}/testplans", {"Instances": 10_000})
        plan = f"{self.case}/testplans/{plan['Id']}"
        client.call("PUT", plan, {"Status": "ReadyForExecution"})
        made = client.call("POST", f"{self.project}/testsets", {"Name": "Nightly"})
        self.set = f"{self.project}/testsets/{made['Id']}"
        client.call("POST", f"{self.set}/testcases", {"Id": case["Id"]})

    def start(self):
        """Starts an execution that takes results; returns its path."""
        started = self.client.call("POST", f"{self.set}/executions", {"Mode": "External"})
        return f"{self.project}/executions/{started['Id']}"
