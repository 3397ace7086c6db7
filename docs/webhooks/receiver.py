#!/usr/bin/env python3
"""Receives notifications from an Assay webhook and prints a line for each.

    WEBHOOK_SECRET=whsec_… python3 receiver.py [port]

Needs nothing but Python. It does everything a receiver has to do: verify the signature, respond
quickly, and ignore duplicates.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
TOLERANCE_IN_SEC = 5 * 60
MAX_BODY_BYTES = 5 << 20  # A batch has up to 4 MiB.

seen = set()  # In practice, store the ids for a day or more so that a restart does not lose them.
lock = threading.Lock()  # Several requests may arrive at the same time.


def is_genuine(headers, body):
    """Returns whether the body was signed with our key within the last five minutes."""
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_IN_SEC:
        return False
    content = f"{headers.get('webhook-id', '')}.{timestamp}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.digest(KEY, content, hashlib.sha256)).decode()
    # Two signatures are sent for a day after the secret has changed.
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), one.encode()) for one in signatures)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if length > MAX_BODY_BYTES:
            return self.respond(413)
        body = self.rfile.read(length)
        if not is_genuine(self.headers, body):
            return self.respond(401)
        events = json.loads(body)
        with lock:
            for event in events if isinstance(events, list) else [events]:
                if event["id"] not in seen:
                    seen.add(event["id"])
                    data = event["data"]
                    print(data["Source"], data["SourceId"], data["Action"], data["State"], data["Origin"], flush=True)
        self.respond(204)

    def respond(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 9000
    server = ThreadingHTTPServer(("127.0.0.1", port), Receiver)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    server.serve_forever()
