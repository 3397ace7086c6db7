// Prints what readers for Node count in samples, as a JSON line for each reader and sample:
// `node read.mjs SAMPLES MODULES PATH...`, with paths within the folder of samples.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [samples, modules, ...paths] = process.argv.slice(2);
const require = createRequire(path.join(modules, "package.json"));
// Packages that are modules only can't be resolved by `require`.
const load = (name, file) => import(pathToFileURL(path.join(modules, "node_modules", name, file)));

const allure = await load("@allurereport/reader", "dist/index.js");
const { PathResultFile } = await load("@allurereport/reader-api", "dist/index.js");
const ctrf = await load("ctrf", "dist/index.js");
const { convertJUnitToCTRFReport } = await load("junit-to-ctrf", "dist/index.js");
const { Query } = require("@cucumber/query");
const { Parser } = require("tap-parser");
const { parse } = require("test-results-parser");

// Readers log to standard output, which is for the counts.
console.log = console.warn = console.info = console.error;

const text = (file) => fs.readFileSync(file, "utf8");
const count = (values, ...wanted) => values.filter((value) => wanted.includes(value)).length;

const readAllure = (reader) => async (sample) => {
  const isFolder = fs.statSync(sample).isDirectory();
  const files = isFolder ? fs.readdirSync(sample).map((name) => path.join(sample, name)) : [sample];
  // The last attempt counts, as in Allure's report.
  const results = new Map();
  const visitor = {
    visitTestResult: async (result) => {
      const key = result.historyId ?? Symbol("result");
      if (!(results.get(key)?.start > result.start)) results.set(key, result);
    },
    visitAttachmentFile: async () => {},
    visitTestFixtureResult: async () => {},
    visitMetadata: async () => {},
    visitGlobals: async () => {},
  };
  for (const file of files.map((file) => new PathResultFile(file))) {
    if (reader.matches(file) && !(await reader.read(visitor, file))) throw new Error("not read");
  }
  const statuses = [...results.values()].map(({ status }) => status);
  return {
    total: statuses.length,
    passed: count(statuses, "passed"),
    failed: count(statuses, "failed", "broken", "unknown"),
    skipped: count(statuses, "skipped"),
  };
};

const fromSummary = (summary) => ({
  total: summary.tests,
  passed: summary.passed,
  failed: summary.failed + summary.other,
  skipped: summary.skipped + summary.pending,
});

const readResults = (type) => (sample) => {
  const { passed, failed, errors, skipped, status } = parse({ type, files: [sample] });
  const total = passed + failed + errors + skipped;
  return { total, passed, failed: failed + errors, skipped, red: status === "FAIL" };
};

function readCtrf(sample) {
  return fromSummary(ctrf.calculateSummary(ctrf.parse(text(sample)).results.tests));
}

async function readJunitToCtrf(sample) {
  return fromSummary((await convertJUnitToCTRFReport(sample)).results.summary);
}

function readTap(sample) {
  const events = Parser.parse(text(sample), { flat: true });
  const [, { ok }] = events.find(([event]) => event === "complete");
  // The line behind subtests is that of a suite.
  const points = events.filter(([event, point]) => event === "assert" && !point.closingTestPoint);
  const results = points.map(([, { ok, skip, todo }]) => (skip || todo ? "skipped" : ok ? "passed" : "failed"));
  const [passed, failed, skipped] = ["passed", "failed", "skipped"].map((result) => count(results, result));
  return { total: points.length, passed, failed, skipped, red: !ok };
}

function readMessages(sample) {
  const query = new Query();
  for (const line of text(sample).split("\n").filter(Boolean)) query.update(JSON.parse(line));
  const finished = query.findAllTestCaseFinished();
  const statuses = finished.map((test) => query.findMostSevereTestStepResultBy(test).status);
  return {
    total: statuses.length,
    passed: count(statuses, "PASSED"),
    failed: count(statuses, "FAILED", "UNDEFINED", "AMBIGUOUS", "PENDING", "UNKNOWN"),
    skipped: count(statuses, "SKIPPED"),
    red: !query.findTestRunFinished().success,
  };
}

const readers = {
  allure: { "@allurereport/reader": readAllure(allure.allure2) },
  ctrf: { ctrf: readCtrf },
  "cucumber-json": {
    "@allurereport/reader": readAllure(allure.cucumberjson),
    "test-results-parser": readResults("cucumber"),
  },
  "cucumber-messages": { "@cucumber/query": readMessages },
  junit: {
    "@allurereport/reader": readAllure(allure.junitXml),
    "junit-to-ctrf": readJunitToCtrf,
    "test-results-parser": readResults("junit"),
  },
  nunit3: { "test-results-parser": readResults("nunit") },
  tap: { "tap-parser": readTap },
  testng: { "test-results-parser": readResults("testng") },
  trx: { "test-results-parser": readResults("mstest") },
  xunit: { "test-results-parser": readResults("xunit") },
};

for (const sample of paths) {
  for (const [reader, read] of Object.entries(readers[sample.split("/")[0]] ?? {})) {
    const opinion = { reader, sample };
    try {
      const counts = await read(path.resolve(samples, sample));
      opinion.counts = { red: counts.failed > 0, ...counts };
      if (Object.values(counts).some(Number.isNaN)) throw new Error("counts are not numbers");
    } catch (error) {
      opinion.error = String(error).split("\n")[0];
      delete opinion.counts;
    }
    process.stdout.write(`${JSON.stringify(opinion)}\n`);
  }
}
