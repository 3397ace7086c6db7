#!/usr/bin/env python3
"""Takes notifications that Assay sends by webhook, and prints a line for each.

    WEBHOOK_SECRET=whsec_… python3 receiver.py [port]

Needs nothing but Python. It shows all that a receiver has to do: look at the signature, answer
quickly, and take what comes twice once.
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
TOLERANCE_IN_SEC = 5 * 60
LARGEST = 1 << 20

seen = set()  # A real receiver remembers these for a day or more, where a restart does not lose them.


def is_genuine(headers, body):
    """Whether the body was signed with our key, and not long ago."""
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) > TOLERANCE_IN_SEC:
        return False
    content = f"{headers.get('webhook-id', '')}.{timestamp}.".encode() + body
    ours = "v1," + base64.b64encode(hmac.digest(KEY, content, hashlib.sha256)).decode()
    # There are two signatures for a day after the secret was changed.
    theirs = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(ours.encode(), one.encode()) for one in theirs)


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if length > LARGEST:
            return self.answer(413)
        body = self.rfile.read(length)
        if not is_genuine(self.headers, body):
            return self.answer(401)
        event = json.loads(body)
        if event["id"] not in seen:
            seen.add(event["id"])
            what = event["data"]
            print(what["Source"], what["SourceId"], what["Action"], what["State"], flush=True)
        self.answer(204)

    def answer(self, status):
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
