"""An engine for Assay: runs a command for each test, and shows its output while it runs.

    ASSAY_URL=http://127.0.0.1:8080 ASSAY_TOKEN=... python3 engine.py [--once] ./run-test

The command gets the identifier of the test in ASSAY_TEST_CASE, and in ASSAY_FILES a folder with the files of its
plan, subject and environment, named by their ids. It passes if it exits with 0.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

URL = os.environ["ASSAY_URL"].rstrip("/") + "/api/automation/leases"
HEADERS = {"Authorization": "Bearer " + os.environ.pop("ASSAY_TOKEN"), "Content-Type": "application/json"}
ONCE, COMMAND = sys.argv[1] == "--once", sys.argv[1 + (sys.argv[1] == "--once"):]
WORK = {"Engine": "engine.py", "TargetGroup": os.environ.get("ASSAY_TARGET_GROUP", ""), "WaitInSec": 10}
# A lease is lost 60 seconds (ASSAY_LEASE_SECONDS) after the last heartbeat. The test is killed ten seconds before.
HELD = 50


def call(method, path, body=None):
    """Sends a request until it is answered. Returns None if the lease is lost or has ended."""
    while True:
        try:
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(URL + path, data, HEADERS, method=method)
            # If a heartbeat is not answered, there is time for another one before the lease is lost.
            with urllib.request.urlopen(request, timeout=20) as response:
                return json.loads(response.read() or b"true")
        except urllib.error.HTTPError as error:
            if error.code in (404, 409):
                return None
            if error.code < 500 and error.code not in (408, 429):
                raise SystemExit(error.read().decode())
        except OSError as error:
            print(error, file=sys.stderr)
        time.sleep(2)


def download(lease, folder):
    """Downloads the files of a lease. Returns the reason if the test does not get them."""
    for file in lease["Files"]:
        request = urllib.request.Request(f"{URL}/{lease['Id']}/files/{file['Id']}", headers=HEADERS)
        digest = hashlib.sha256()
        try:
            with urllib.request.urlopen(request, timeout=60) as response, open(f"{folder}/{file['Id']}", "wb") as copy:
                while piece := response.read(1 << 20):
                    digest.update(piece)
                    copy.write(piece)
        except OSError as error:
            return f"{file['Name']}: {error}"
        if digest.hexdigest() != file["Sha256"]:
            return f"{file['Name']} has arrived damaged"
    return None


def failed(number, problem):
    """Returns the result of an instance that does not get its files."""
    step = {"StepNr": 1, "TestInput": "Get the files of the test", "ActualResult": problem, "Result": "Error"}
    return {"InstanceNr": number, "Result": "Error", "Steps": [step]}


def log(lease, running, text):
    """Appends text to the log of the lease. With its offset, a repeated request appends it once."""
    state = call("POST", f"/{lease['Id']}/log", {"Text": text, "Offset": running["logged"]})
    running["logged"] = state["Size"] if state else running["logged"]


def run(lease, number, running, folder):
    """Runs the command for an instance. Returns its result."""
    begun, late = time.monotonic(), []
    variables = {"ASSAY_TEST_CASE": lease["TestCase"]["Identifier"], "ASSAY_FILES": folder}
    process = subprocess.Popen(
        COMMAND, env={**os.environ, **variables}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    running["kill"] = lambda: os.killpg(process.pid, signal.SIGKILL)
    if not running["is"]:  # It was canceled before it began.
        running["kill"]()
    timer = threading.Timer(lease["MaximumDurationInMin"] * 60, lambda: (late.append(True), running["kill"]()))
    timer.start()
    end, waiting, sent = "", "", begun
    for line in process.stdout:
        line = line.replace("\0", "\ufffd")  # Results must not have NUL.
        end, waiting = (end + line)[-10_000:], (waiting + line)[-10_000:]
        if time.monotonic() > sent + 1:
            log(lease, running, waiting)
            waiting, sent = "", time.monotonic()
    log(lease, running, waiting)
    result = "Passed" if process.wait() == 0 else "Error" if late else "Failed"
    timer.cancel()
    step = {"StepNr": 1, "TestInput": " ".join(COMMAND), "ActualResult": "Timed out\n" * len(late) + end, "Result": result}
    return {"InstanceNr": number, "Result": result, "DurationInSec": time.monotonic() - begun,
            "ExecutionLogUri": "live.log", "Steps": [step]}


def beat(lease, running):
    """Renews the lease until it ends. Stops the test if it should not continue, or before the lease is lost."""
    def stop(is_late):
        if running["is"]:
            running.update({"is": False, "late": is_late})
            running["kill"]()

    def start_timer():
        timer = threading.Timer(HELD, stop, [True])
        timer.daemon = True
        timer.start()
        return timer

    last = start_timer()
    while running["is"]:
        following = start_timer()  # Assay cannot renew the lease before the request is sent.
        state = call("POST", f"/{lease['Id']}/heartbeat", {"WaitInSec": 10})
        last.cancel()
        last = following
        if not state or not state["Continue"]:
            stop(False)
    last.cancel()


while True:
    leases = call("POST", "", WORK)
    if not leases:  # A proxy may not wait for work.
        time.sleep(1)
    for lease in leases or []:
        running = {"is": True, "late": False, "logged": 0, "kill": lambda: None}
        threading.Thread(target=beat, args=(lease, running), daemon=True).start()
        with tempfile.TemporaryDirectory() as folder:
            problem = download(lease, folder)
            for number in lease["InstanceNumbers"]:
                result = failed(number, problem) if problem else run(lease, number, running, folder)
                if not running["is"] or not call("POST", f"/{lease['Id']}/instances", [result]):
                    break
        running["is"] = False
        if running["late"]:  # The work returns to the queue.
            call("DELETE", f"/{lease['Id']}")
        else:
            call("POST", f"/{lease['Id']}/complete", {})
        if ONCE:
            sys.exit()
