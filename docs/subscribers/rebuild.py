"""Rebuilds the state of executions from Assay's events alone, and keeps it in a file.

    pip install -r requirements.txt
    python rebuild.py nats://127.0.0.1:4222 billing executions.jsonl [DOMAIN]

Each line is the state of an execution or of one of its reports; the last line of a record counts. It needs no request
to Assay, and `subscriber.py` beside it. It may be killed at any time, and may receive messages twice or in another
order: the versions of records say which message is the latest.
"""

import asyncio
import json
import os
import sys

from nats.js.errors import APIError

from subscriber import bind, check, stored

# The fields to keep of TestCase.Finished and TestCase.Reviewed, and of what happens to the execution of a test set.
FIELDS = {
    "TestCase": ("ExecutionId", "TestCaseIdentifier", "Result", "Change"),
    "TestSet": ("ExecutionId", "ProjectId", "TestSetId", "TestSetName", "Result", "Statistic", "Changes", "Verdict",
                "Trend", "Branch", "Commit", "Build", "Url", "Path"),
}


def record_of(event):
    """Returns the state of the execution or the report that an event is about, if it is about one."""
    data = event["data"]
    if event["source"] != "/assay/notifications" or data["Source"] not in FIELDS:
        return None  # A client has created it, or it is about something else.
    if data["ExecutionId"] is None or data["RecordVersion"] is None:
        return None
    fields = {name: data[name] for name in FIELDS[data["Source"]]}
    return {"Id": data["TargetId"], "RecordVersion": int(data["RecordVersion"]), "Status": data["State"], **fields}


async def main(url, name, path, domain=None):
    consumer = await bind(url, name, domain)
    # More than Assay sends before they are acknowledged would only be waited for.
    batch = min(100, (await consumer.consumer_info()).config.max_ack_pending)
    file = open(path, "a+b")
    versions = {record["Id"]: record["RecordVersion"] for record in stored(file)}
    while True:
        try:
            # Messages that arrive within a second are stored at once.
            messages = await consumer.fetch(batch, timeout=1)
        except (asyncio.TimeoutError, APIError):  # nats.errors.TimeoutError is one, too.
            await check(consumer, name)
            continue
        for message in messages:
            record = record_of(json.loads(message.data))
            if record and record["RecordVersion"] > versions.get(record["Id"], 0):
                versions[record["Id"]] = record["RecordVersion"]
                file.write(json.dumps(record).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
        # The position in the stream is NATS' list of acknowledgements, and never ahead of the file: NATS delivers again
        # what a kill has kept from the file, and also what is in it already, which its version shows.
        for message in messages:
            await message.ack()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
