// A session with Assay: creates a test case with a plan, reports and reviews an execution of it, and
// uploads the report of a test tool.
//
//   npm install
//   npm run types     # generates assay.d.ts from docs/openapi.json
//   npm run check     # checks the session against the interface
//   ASSAY_PASSWORD=… node session.ts http://127.0.0.1:8080 admin@assay.local ../../first-session/junit.xml
//
// Node 22.18 or later runs TypeScript directly.

import { readFile } from "node:fs/promises";
import { argv, env } from "node:process";

import createClient from "openapi-fetch";

import type { components, paths } from "./assay.d.ts";

type Schemas = components["schemas"];

const [, , baseUrl, email, junit] = argv;
const password = env["ASSAY_PASSWORD"];
if (!baseUrl || !email || !junit || !password) {
  throw new Error("usage: ASSAY_PASSWORD=… node session.ts URL EMAIL JUNIT-FILE");
}

const assay = createClient<paths>({ baseUrl });

// Returns the data of a response, or throws the problem.
async function ok<T>(response: Promise<{ data?: T; error?: Schemas["Problem"] }>): Promise<T> {
  const { data, error } = await response;
  if (error) {
    const fields = error.errors?.map(({ pointer, detail }) => `${pointer} ${detail}`) ?? [];
    throw new Error([`${error.code}: ${error.detail}`, ...fields].join("\n"));
  }
  return data as T;
}

// Log in; every other request carries the token. `satisfies` lets the compiler find unknown fields in a
// body, which the client would accept.
const { token } = await ok(
  assay.POST("/api/token/login", {
    body: { Email: email, Password: password } satisfies Schemas["LoginInput"],
  }),
);
assay.use({
  onRequest({ request }) {
    request.headers.set("Authorization", `Bearer ${token}`);
  },
});

// Create a project with a test case, a plan that is ready, and a test set.
const project = await ok(
  assay.POST("/api/projects", {
    body: { Name: "Web shop", Description: "What customers see and buy" } satisfies Schemas["ProjectInput"],
  }),
);
const projectId = project.Id;
const testCase = await ok(
  assay.POST("/api/projects/{projectId}/testcases", {
    params: { path: { projectId } },
    body: { Name: "Pay by card", Identifier: "checkout.pay_by_card" } satisfies Schemas["TestCaseInput"],
  }),
);
const plan = await ok(
  assay.POST("/api/projects/{projectId}/testcases/{testCaseId}/testplans", {
    params: { path: { projectId, testCaseId: testCase.Id } },
    body: { Instances: 1 } satisfies Schemas["TestPlanInput"],
  }),
);
await ok(
  assay.PUT("/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}", {
    params: { path: { projectId, testCaseId: testCase.Id, testPlanId: plan.Id } },
    body: { Status: "ReadyForExecution", DataVersion: plan.DataVersion } satisfies Schemas["TestPlanChanges"],
  }),
);
const set = await ok(
  assay.POST("/api/projects/{projectId}/testsets", {
    params: { path: { projectId } },
    body: { Name: "Every night", TestCases: [{ Id: testCase.Id }] } satisfies Schemas["TestSetInput"],
  }),
);

// Start an execution and report its results.
const execution = await ok(
  assay.POST("/api/projects/{projectId}/testsets/{testSetId}/executions", {
    params: { path: { projectId, testSetId: set.Id } },
    body: { Mode: "External" } satisfies Schemas["StartExecutionInput"],
  }),
);
const path = { projectId, executionId: execution.Id };
const reported = await ok(
  assay.POST("/api/projects/{projectId}/executions/{executionId}/results", {
    params: { path },
    body: [
      {
        Identifier: "checkout.pay_by_card",
        Result: "Passed",
        DurationInSec: 8.3,
        Steps: [{ StepNr: 1, TestInput: "Pay", Result: "Passed", DurationInSec: 8.3 }],
      },
    ] satisfies Schemas["InstanceResultInput"][],
  }),
);
const completed = await ok(
  assay.POST("/api/projects/{projectId}/executions/{executionId}/complete", { params: { path } }),
);
console.log(`${reported.Accepted} result, ${completed.Statistic.TestCasesPassed} passed`);

// Review the reports.
for (const report of completed.TestReports) {
  const { TestCaseId: testCaseId, TestPlanId: testPlanId, Id: testReportId } = report;
  const reviewed = await ok(
    assay.PUT(
      "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/testreports/{testReportId}",
      {
        params: { path: { projectId, testCaseId, testPlanId, testReportId } },
        body: { Status: "Accepted", Comment: "As it should be" } satisfies Schemas["TestReportChanges"],
      },
    ),
  );
  console.log(`${reviewed.TestCaseName}: ${reviewed.Result}, ${reviewed.Status}`);
}

// Upload the report of a test run.
const uploaded = await ok(
  assay.POST("/api/projects/{projectId}/testsets/{testSetId}/results", {
    params: { path: { projectId, testSetId: set.Id } },
    body: { file: await readFile(junit, "utf8") },
    bodySerializer({ file }) {
      const form = new FormData();
      form.append("file", new File([file], "junit.xml"));
      return form;
    },
  }),
);
const { TestCasesTotal: total, TestCasesFailed: failed } = uploaded.Statistic;
console.log(`${total} tests uploaded, ${failed} failed`);

// Print the steps of the first test that failed.
const failure = uploaded.TestReports.find((report) => report.Result === "Failed");
if (failure) {
  const { TestCaseId: testCaseId, TestPlanId: testPlanId, Id: testReportId } = failure;
  const at = { projectId, testCaseId, testPlanId, testReportId };
  const instances = await ok(
    assay.GET(
      "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/testreports/{testReportId}/instances",
      { params: { path: at } },
    ),
  );
  for (const { Id: instanceId } of instances) {
    const instance = await ok(
      assay.GET(
        "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/testreports/{testReportId}/instances/{instanceId}",
        { params: { path: { ...at, instanceId } } },
      ),
    );
    const steps = instance.Steps.map((step) => `${step.StepNr} ${step.Result}: ${step.TestInput}`);
    console.log([`${failure.TestCaseName}:`, ...steps].join("\n  "));
  }
}
