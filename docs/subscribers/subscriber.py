"""Reads Assay's notifications from NATS and appends each of them, once, to a file as a line.

    pip install -r requirements.txt
    python subscriber.py nats://127.0.0.1:4222 billing notifications.jsonl [DOMAIN]
"""

import asyncio
import json
import os
import sys

import nats
from nats.js.errors import APIError, NotFoundError

STREAM = "ASSAY_NOTIFICATIONS"


async def main(url, name, path, domain=None):
    consumer = await bind(url, name, domain)
    with open(path, "a+b") as file:
        # In practice, store the id as a key in your database, in the transaction of your effects.
        seen = {event["id"] for event in stored(file)}
        while True:
            try:
                [message] = await consumer.fetch(1, timeout=30)
            except (asyncio.TimeoutError, APIError):  # nats.errors.TimeoutError is one, too.
                await check(consumer, name)
                continue
            event = json.loads(message.data)
            if event["id"] not in seen:  # A message may be delivered twice.
                file.write(json.dumps(event).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
                seen.add(event["id"])
            await message.ack()  # Only after the event is on disk.


def stored(file):
    """Returns the JSON lines of a file. Removes a last one that a kill has cut off."""
    file.seek(0)
    lines = [line for line in file if line.endswith(b"\n")]
    file.truncate(sum(map(len, lines)))
    return map(json.loads, lines)


async def bind(url, name, domain=None):
    """Returns the consumer of a subscriber. Ends the program if it does not exist."""
    connection = await nats.connect(url, max_reconnect_attempts=-1)
    jetstream = connection.jetstream(domain=domain) if domain else connection.jetstream()
    consumer = await jetstream.pull_subscribe_bind(durable=name, stream=STREAM)
    # Without a consumer or a permission, requests for messages time out as they do without messages.
    try:
        await consumer.consumer_info()
    except NotFoundError:
        sys.exit(missing(name))
    except nats.errors.Error as error:
        sys.exit(f"cannot read the consumer {name}: {error!r}. Check the URL, the user and the domain.")
    return consumer


async def check(consumer, name):
    """Ends the program if the consumer does not exist."""
    try:
        await consumer.consumer_info()
    except NotFoundError:
        sys.exit(missing(name))
    except nats.errors.Error as error:
        print(f"NATS does not answer, or refuses the request ({error!r}); will retry", file=sys.stderr)
        await asyncio.sleep(1)


def missing(name):
    return (
        f"the consumer {name} of the stream {STREAM} does not exist: it was never added or was removed, its "
        f"customer was deleted, or NATS has lost its store. Add it with: assay subscribers add {name}"
    )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
