"""Rebuilds the state of executions from Assay's events alone, and keeps it in a file.

    pip install -r requirements.txt
    python rebuild.py nats://127.0.0.1:4222 billing state.json [DOMAIN]

It needs no request to Assay. It may be killed at any time, share nothing with other processes, and receive
messages twice or in another order: the versions of records say which message is the latest.
"""

import asyncio
import json
import os
import sys

import nats


def apply(state, event):
    """Adds an event to the state: executions by their ids, each with its reports by their ids."""
    if event["source"] != "/assay/notifications":
        return  # A client has created it.
    data = event["data"]
    if data["ExecutionId"] is None or data["RecordVersion"] is None:
        return
    execution = state.setdefault(data["ExecutionId"], {"RecordVersion": 0, "Reports": {}})
    version = int(data["RecordVersion"])
    if data["Source"] == "TestCase":  # TestCase.Finished and TestCase.Reviewed
        report = execution["Reports"].setdefault(data["TargetId"], {"RecordVersion": 0})
        if version > report["RecordVersion"]:
            report.update(RecordVersion=version, Status=data["State"], **{
                name: data[name] for name in ("TestCaseIdentifier", "Result", "Change")
            })
    elif data["Source"] == "TestSet" and version > execution["RecordVersion"]:
        execution.update(RecordVersion=version, Status=data["State"], **{
            name: data[name]
            for name in ("ProjectId", "TestSetId", "TestSetName", "Result", "Statistic", "Changes",
                         "Verdict", "Branch", "Commit", "Build", "Url", "Path")
        })


def is_complete(execution):
    """Whether an execution has ended and all of its reports have arrived."""
    ended = execution.get("Status") in ("Completed", "Canceled")
    return ended and len(execution["Reports"]) == execution["Statistic"]["TestCasesTotal"]


def save(state, path):
    """Replaces the file at once, so that it is whole whenever the program is killed."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


async def main(url, name, path, domain=None):
    connection = await nats.connect(url, max_reconnect_attempts=-1)
    jetstream = connection.jetstream(domain=domain) if domain else connection.jetstream()
    consumer = await jetstream.pull_subscribe_bind(durable=name, stream="ASSAY_NOTIFICATIONS")
    info = await consumer.consumer_info()  # Fails if the subscriber was not added.
    # More than Assay sends before they are acknowledged would only be waited for.
    batch = min(100, info.config.max_ack_pending)
    state = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
    while True:
        try:
            # Messages that arrive within a second are saved at once.
            messages = await consumer.fetch(batch, timeout=1)
        except nats.errors.TimeoutError:
            continue
        for message in messages:
            apply(state, json.loads(message.data))
        save(state, path)
        for message in messages:
            await message.ack()  # Only after the state is on disk.


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
