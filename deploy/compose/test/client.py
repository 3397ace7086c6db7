"""A client of `/api` that uses another replica if one refuses connections."""

import http.client
import itertools
import json

from containers import PASSWORD


class Client:
    """Opens a connection for each request, and never repeats a request."""

    def __init__(self, replicas, token=None):
        self.replicas, self.token = replicas, token
        self.turn = itertools.count()

    def call(self, method, path, body=None, content_type="application/json"):
        """Returns the status and the body of the response."""
        headers = {"Connection": "close"}
        if self.token:
            headers["Authentication"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = content_type
            body = json.dumps(body) if content_type == "application/json" else body
        connection = self.connect()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        return answer.status, json.loads(text) if text else None

    def connect(self):
        first = next(self.turn)
        for step in range(len(self.replicas)):
            host = self.replicas[(first + step) % len(self.replicas)]
            connection = http.client.HTTPConnection(host, 8080, timeout=30)
            try:
                connection.connect()
                return connection
            except (ConnectionRefusedError, TimeoutError, OSError):
                continue
        raise ConnectionRefusedError("no replica accepts connections")

    def ok(self, method, path, *arguments, **named):
        status, answer = self.call(method, path, *arguments, **named)
        if not 200 <= status < 300:
            raise SystemExit(f"{method} {path}: {status} {answer}")
        return answer

    def log_in(self):
        login = {"Email": "admin@assay.local", "Password": PASSWORD}
        token = self.ok("POST", "/api/token/login", login)["token"]
        return Client(self.replicas, token)
