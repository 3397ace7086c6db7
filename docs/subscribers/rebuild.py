"""Rebuilds the state of executions from Assay's events alone, and keeps it in a file.

    pip install -r requirements.txt
    python rebuild.py nats://127.0.0.1:4222 billing state.json [DOMAIN]

It needs no request to Assay, and `subscriber.py` beside it. It may be killed at any time, and may receive messages
twice or in another order: the versions of records say which message is the latest.
"""

import asyncio
import json
import os
import sys

from nats.js.errors import APIError

from subscriber import bind, check


def apply(state, event):
    """Adds an event to the state: executions by their ids, each with its reports by their ids."""
    if event["source"] != "/assay/notifications":
        return  # A client has created it.
    data = event["data"]
    if data["ExecutionId"] is None or data["RecordVersion"] is None:
        return
    if data["Source"] not in ("TestSet", "TestCase"):
        return
    execution = state.setdefault(data["ExecutionId"], {"RecordVersion": 0, "Reports": {}})
    version = int(data["RecordVersion"])
    if data["Source"] == "TestCase":  # TestCase.Finished and TestCase.Reviewed
        report = execution["Reports"].setdefault(data["TargetId"], {"RecordVersion": 0})
        if version > report["RecordVersion"]:
            report.update(RecordVersion=version, Status=data["State"], **{
                name: data[name] for name in ("TestCaseIdentifier", "Result", "Change")
            })
    elif version > execution["RecordVersion"]:
        execution.update(RecordVersion=version, Status=data["State"], **{
            name: data[name]
            for name in ("ProjectId", "TestSetId", "TestSetName", "Result", "Statistic", "Changes",
                         "Verdict", "Trend", "Branch", "Commit", "Build", "Url", "Path")
        })


def save(state, path):
    """Replaces the file at once, so that it is whole whenever the program is killed."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(json.dumps(state))
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


async def main(url, name, path, domain=None):
    consumer = await bind(url, name, domain)
    # More than Assay sends before they are acknowledged would only be waited for.
    batch = min(100, (await consumer.consumer_info()).config.max_ack_pending)
    state = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
    while True:
        try:
            # Messages that arrive within a second are saved at once.
            messages = await consumer.fetch(batch, timeout=1)
        except (asyncio.TimeoutError, APIError):  # nats.errors.TimeoutError is one, too.
            await check(consumer, name)
            continue
        for message in messages:
            apply(state, json.loads(message.data))
        save(state, path)
        for message in messages:
            await message.ack()  # Only after the state is on disk.


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
