/*
Rebuilds the state of executions from Assay's events alone, and keeps it in a file: rebuild.py in Node.

    npm install nats@2.29.3
    node rebuild.mjs nats://127.0.0.1:4222 billing executions.jsonl [DOMAIN]

Each line is the state of an execution or of one of its reports; the last line of a record counts. It needs no request
to Assay. It may be killed at any time, and receive messages twice or in another order: the versions of records say
which message is the latest.
*/

import fs from "node:fs";
import nats from "nats";

const STREAM = "ASSAY_NOTIFICATIONS";

/** The fields to keep of TestCase.Finished and TestCase.Reviewed, and of what happens to the execution of a test set. */
const FIELDS = {
  TestCase: ["ExecutionId", "TestCaseIdentifier", "Result", "Change"],
  TestSet: [
    "ExecutionId", "ProjectId", "TestSetId", "TestSetName", "Result", "Statistic", "Changes", "Verdict", "Trend",
    "Branch", "Commit", "Build", "Url", "Path",
  ],
};

/** Returns the state of the execution or the report that an event is about, if it is about one. */
function recordOf({ source, data }) {
  const names = source === "/assay/notifications" && FIELDS[data.Source];
  if (!names || data.ExecutionId === null || data.RecordVersion === null) {
    return null; // A client has created it, or it is about something else.
  }
  const fields = Object.fromEntries(names.map((name) => [name, data[name]]));
  return { Id: data.TargetId, RecordVersion: Number(data.RecordVersion), Status: data.State, ...fields };
}

/** Opens the file, without a last line that a kill has cut off. Returns it with the versions of its records. */
function restore(path) {
  const file = fs.openSync(path, "a+");
  const bytes = fs.readFileSync(file);
  const size = bytes.lastIndexOf("\n") + 1;
  fs.ftruncateSync(file, size);
  const lines = bytes.toString("utf8", 0, size).split("\n").slice(0, -1);
  const records = lines.map((line) => JSON.parse(line));
  return [file, new Map(records.map((record) => [record.Id, record.RecordVersion]))];
}

async function main(url, name, path, domain) {
  const connection = await nats.connect({ servers: url, maxReconnectAttempts: -1 });
  // Fails if the subscriber was not added.
  const consumer = await connection.jetstream({ domain }).consumers.get(STREAM, name);
  const [file, versions] = restore(path);
  let [lines, received] = ["", []];
  const finish = () => {
    fs.appendFileSync(file, lines);
    fs.fsyncSync(file);
    // The position in the stream is NATS' list of acknowledgements, and never ahead of the file: NATS delivers again
    // what a kill has kept from the file, and also what is in it already, which its version shows.
    received.forEach((message) => message.ack());
    [lines, received] = ["", []];
  };
  // Ends with an error if the consumer is removed.
  for await (const message of await consumer.consume({ max_messages: 100, abort_on_missing_resource: true })) {
    const record = recordOf(message.json());
    if (record && record.RecordVersion > (versions.get(record.Id) ?? 0)) {
      versions.set(record.Id, record.RecordVersion);
      lines += `${JSON.stringify(record)}\n`;
    }
    received.push(message);
    // Messages that have arrived together are stored together.
    if (received.length === 1) setImmediate(finish);
  }
  throw new Error(`the consumer ${name} of the stream ${STREAM} does not exist any more`);
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(`${error}. Check the URL, the user and the domain, and: assay subscribers list`);
  process.exit(1);
});
