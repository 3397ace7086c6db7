"""Continuous requests during a test."""

import http.client
import threading
import time
import uuid


# Requests per second of all threads. While a gateway is replaced, the other one gets them all, and each
# gateway limits the requests of an address to 100 a second.
RATE = 60


class Load:
    """Threads that write and read through one client and record the responses."""

    def __init__(self, client, project, reads):
        self.client, self.project, self.reads = client, project, reads
        self.acknowledged = set()
        self.statuses = {path: [] for path in [*reads, "write"]}
        self.broken = []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.write) for _ in range(2)]
        self.threads += [threading.Thread(target=self.read, args=[path]) for path in reads]
        self.pause = len(self.threads) / RATE

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *failure):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def forget(self):
        """Resets the counts."""
        for statuses in self.statuses.values():
            statuses.clear()
        self.broken.clear()

    def attempt(self, what, *request):
        began = time.monotonic()
        try:
            status, answer = self.client.call(*request)
        except (OSError, http.client.HTTPException) as error:
            self.broken.append(f"{request[:2]}: {error!r}")
            return None
        self.statuses[what].append((status, time.monotonic() - began))
        return answer if status < 300 else None

    def write(self):
        while not self.stop.is_set():
            case = {"Name": "Under load", "Description": "", "Identifier": str(uuid.uuid4())}
            made = self.attempt("write", "POST", f"{self.project}/testcases", case)
            if made:
                self.acknowledged.add(made["Id"])
            time.sleep(self.pause)

    def read(self, path):
        while not self.stop.is_set():
            self.attempt(path, "GET", path)
            time.sleep(self.pause)

    def seen(self, what):
        return {status for status, _ in self.statuses[what]}

    def failures(self):
        """Returns the failed statuses and the broken connections."""
        statuses = [status for seen in self.statuses.values() for status, _ in seen]
        return [status for status in statuses if status >= 400] + self.broken

    def count(self):
        return sum(len(seen) for seen in self.statuses.values())

    def lost(self):
        """Returns the test cases that were acknowledged but do not exist."""
        cases = self.client.ok("GET", f"{self.project}/testcases")
        return self.acknowledged - {case["Id"] for case in cases}

    def slowest(self, what, status):
        return max((took for seen, took in self.statuses[what] if seen == status), default=0)
