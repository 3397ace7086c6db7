"""Reads Assay's notifications from NATS and appends each of them, once, to a file as a line.

    pip install -r requirements.txt
    python subscriber.py nats://127.0.0.1:4222 billing notifications.jsonl [DOMAIN]
"""

import asyncio
import json
import os
import sys

import nats


async def main(url, name, path, domain=None):
    connection = await nats.connect(url, max_reconnect_attempts=-1)
    jetstream = connection.jetstream(domain=domain) if domain else connection.jetstream()
    consumer = await jetstream.pull_subscribe_bind(durable=name, stream="ASSAY_NOTIFICATIONS")
    with open(path, "a+", encoding="utf-8") as file:
        # In practice, store the id as a key in your database, in the transaction of your effects.
        file.seek(0)
        seen = {json.loads(line)["id"] for line in file}
        while True:
            try:
                [message] = await consumer.fetch(1, timeout=30)
            except nats.errors.TimeoutError:
                continue
            event = json.loads(message.data)
            if event["id"] not in seen:  # A message may be delivered twice.
                file.write(json.dumps(event) + "\n")
                file.flush()
                os.fsync(file.fileno())
                seen.add(event["id"])
            await message.ack()  # Only after the event is on disk.


asyncio.run(main(*sys.argv[1:]))
