"""Plugin of pytest that reports results to an open execution of Assay while the tests run.

Copy this file next to your tests and run:

    ASSAY_URL=https://assay.example.org ASSAY_TOKEN=... ASSAY_PROJECT=shop ASSAY_TEST_SET=nightly \\
        pytest -p assay_reporter

The run is an execution of its own, which ends with it. Shards that run at the same time report to one execution if all
of them have the same ASSAY_KEY and ASSAY_REPORTERS, their number, and each has its own ASSAY_REPORTER:

    ASSAY_KEY=run-1205 ASSAY_REPORTER=shard-1 ASSAY_REPORTERS=4 pytest -p assay_reporter

All tests are announced when they have been collected. If the shard is killed, those without a result are aborted
when the execution ends. A test that is repeated, as by pytest-rerunfailures, has one instance with several attempts.
Needs the token permissions Execute, and Write if the project, the test set or test cases are created.
"""

import collections
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

# Maximum number of results in a request, and the interval at which they are sent, in seconds.
BATCH = 1000
INTERVAL = 1.0

# Delays before a failed request is repeated, in seconds.
DELAYS = (0.5, 1, 2, 4, 8, None)


def call(path, body=None):
    """Sends a POST request until Assay answers it, and returns the JSON of the answer."""
    request = urllib.request.Request(
        os.environ["ASSAY_URL"].rstrip("/") + path,
        data=json.dumps(body).encode() if body is not None else b"",
        headers={
            "Authorization": "Bearer " + os.environ["ASSAY_TOKEN"],
            "Content-Type": "application/json",
        },
    )
    for delay in DELAYS:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if delay is None or error.code < 500 and error.code != 429:
                raise RuntimeError(f"{path}: {error.code} {error.read().decode()}") from error
        except OSError:
            if delay is None:
                raise
        time.sleep(delay)


def number(variable):
    """Returns the number in an environment variable, if it is set."""
    return int(os.environ[variable]) if os.environ.get(variable) else None


def identifier(node):
    """Returns the identifier that the test has in JUnit reports of pytest as well."""
    path, *names = node.split("::")
    return ".".join([path.removesuffix(".py").replace("/", "."), *names])


class Reporter:
    def __init__(self):
        self.name = os.environ.get("ASSAY_REPORTER") or "pytest"
        self.execution = None
        self.attempts = collections.Counter()
        self.phases = {}
        self.results = []
        self.sending = threading.Lock()
        self.done = threading.Event()

    def pytest_sessionstart(self):
        opened = call("/api/executions", {
            "Project": os.environ["ASSAY_PROJECT"],
            "TestSet": os.environ["ASSAY_TEST_SET"],
            "Key": os.environ.get("ASSAY_KEY") or None,
            "Reporter": self.name,
            "Reporters": number("ASSAY_REPORTERS"),
            "GraceInSec": number("ASSAY_GRACE_SECONDS"),
        })
        if opened.get("CompletionDateTime"):
            pytest.exit(f"assay_reporter: the execution with the key {os.environ.get('ASSAY_KEY')} has ended. Use "
                        "another ASSAY_KEY; if several jobs report to it, set ASSAY_REPORTERS to their number", 4)
        self.execution = f"/api/projects/{opened['ProjectId']}/executions/{opened['Id']}"
        threading.Thread(target=self.send_regularly, daemon=True).start()

    def pytest_collection_finish(self, session):
        with self.sending:
            self.results += [self.result(item.nodeid, "NotExecuted") for item in session.items]
        self.send()

    def pytest_runtest_logreport(self, report):
        self.phases.setdefault(report.nodeid, []).append(report)
        if report.when != "teardown":
            return
        phases = self.phases.pop(report.nodeid)
        self.attempts[report.nodeid] += 1
        outcome, text = "Passed", ""
        for phase in phases:
            if phase.skipped:
                outcome, text = "Canceled", phase.longreprtext
            elif phase.outcome != "passed":
                outcome, text = "Failed" if phase.when == "call" else "Error", phase.longreprtext
                break
        self.results.append({
            **self.result(report.nodeid, outcome),
            "Attempt": self.attempts[report.nodeid],
            "DurationInSec": sum(phase.duration for phase in phases),
            "Steps": [{"StepNr": 1, "TestInput": report.nodeid, "Result": outcome, "ActualResult": text[-32000:]}],
        })

    def pytest_sessionfinish(self):
        self.done.set()
        if self.execution:
            self.send()
            # The only reporter ends the execution.
            part = urllib.parse.urlencode({"reporter": self.name}) if is_shard() else ""
            call(f"{self.execution}/complete?{part}")

    def result(self, node, result):
        return {"Identifier": identifier(node), "Reporter": self.name, "Result": result}

    def send(self):
        with self.sending:
            while batch := self.results[:BATCH]:
                call(f"{self.execution}/results", batch)
                del self.results[:len(batch)]

    def send_regularly(self):
        while not self.done.wait(INTERVAL):
            try:
                self.send()
            except OSError as error:
                print("assay_reporter will retry:", error, file=sys.stderr)


def is_shard():
    """Returns whether other processes report to the execution, too."""
    return bool(os.environ.get("ASSAY_REPORTER")) or (number("ASSAY_REPORTERS") or 1) > 1


def problem():
    """Returns the reason why the variables do not make a report, if there is one."""
    missing = [name for name in ("ASSAY_URL", "ASSAY_TOKEN", "ASSAY_PROJECT", "ASSAY_TEST_SET")
               if not os.environ.get(name)]
    if is_shard():
        missing += [name for name in ("ASSAY_KEY", "ASSAY_REPORTER") if not os.environ.get(name)]
    return f"set {', '.join(missing)}" if missing else None


def pytest_configure(config):
    # A worker of pytest-xdist sends its reports to the process that has started it.
    if config.option.collectonly or hasattr(config, "workerinput"):
        return
    if not os.environ.get("ASSAY_URL") and not os.environ.get("ASSAY_TOKEN"):
        print("assay_reporter reports nothing: ASSAY_URL and ASSAY_TOKEN are not set", file=sys.stderr)
        return
    if reason := problem():
        raise pytest.UsageError(f"assay_reporter: {reason}")
    if is_shard() and not os.environ.get("ASSAY_REPORTERS"):
        print("assay_reporter: the execution stays open until its grace period ends, since the number of shards is not "
              "known. Set ASSAY_REPORTERS, or run `assay-ci complete` after the last one", file=sys.stderr)
    config.pluginmanager.register(Reporter(), "assay-reporter")
