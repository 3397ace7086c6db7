/*
Rebuilds the state of executions from Assay's events alone, and keeps it in a file: rebuild.py in Node.

    npm install nats@2.29.3
    node rebuild.mjs nats://127.0.0.1:4222 billing state.json [DOMAIN]

It needs no request to Assay. It may be killed at any time, and receive messages twice or in another order: the
versions of records say which message is the latest.
*/

import fs from "node:fs";
import nats from "nats";

const STREAM = "ASSAY_NOTIFICATIONS";

const OF_REPORT = ["TestCaseIdentifier", "Result", "Change"];
const OF_EXECUTION = [
  "ProjectId", "TestSetId", "TestSetName", "Result", "Statistic", "Changes", "Verdict", "Trend", "Branch", "Commit",
  "Build", "Url", "Path",
];

/** Returns some fields of an event's data. */
function pick(data, names) {
  return Object.fromEntries(names.map((name) => [name, data[name]]));
}

/** Adds an event to the state: executions by their ids, each with its reports by their ids. */
function apply(state, event) {
  const data = event.data;
  if (event.source !== "/assay/notifications" || data.ExecutionId === null || data.RecordVersion === null) {
    return; // A client has created it, or it is about something else.
  }
  const execution = (state[data.ExecutionId] ??= { RecordVersion: 0, Reports: {} });
  const version = Number(data.RecordVersion);
  if (data.Source === "TestCase") { // TestCase.Finished and TestCase.Reviewed
    const report = (execution.Reports[data.TargetId] ??= { RecordVersion: 0 });
    if (version > report.RecordVersion) {
      Object.assign(report, { RecordVersion: version, Status: data.State }, pick(data, OF_REPORT));
    }
  } else if (data.Source === "TestSet" && version > execution.RecordVersion) {
    Object.assign(execution, { RecordVersion: version, Status: data.State }, pick(data, OF_EXECUTION));
  }
}

/** Replaces the file at once, so that it is whole whenever the program is killed. */
function save(state, path) {
  fs.writeFileSync(`${path}.new`, JSON.stringify(state), { flush: true });
  fs.renameSync(`${path}.new`, path);
}

async function main(url, name, path, domain) {
  const connection = await nats.connect({ servers: url, maxReconnectAttempts: -1 });
  // Fails if the subscriber was not added.
  const consumer = await connection.jetstream({ domain }).consumers.get(STREAM, name);
  const state = fs.existsSync(path) ? JSON.parse(fs.readFileSync(path, "utf8")) : {};
  let applied = [];
  const finish = () => {
    save(state, path);
    applied.forEach((message) => message.ack()); // Only after the state is on disk.
    applied = [];
  };
  // Ends with an error if the consumer is removed.
  for await (const message of await consumer.consume({ max_messages: 100, abort_on_missing_resource: true })) {
    apply(state, message.json());
    applied.push(message);
    // Messages that have arrived together are saved together.
    if (applied.length === 1) setImmediate(finish);
  }
  throw new Error(`the consumer ${name} of the stream ${STREAM} does not exist any more`);
}

main(...process.argv.slice(2)).catch((error) => {
  console.error(`${error}. Check the URL, the user and the domain, and: assay subscribers list`);
  process.exit(1);
});
