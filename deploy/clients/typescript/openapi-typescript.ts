// The session with openapi-fetch and the types of openapi-typescript.

import createClient from "openapi-fetch";

import type { components, paths } from "./generated/assay";
import { session } from "./session";

type Problem = components["schemas"]["Problem"];

// Returns the data of a response, or throws the problem.
async function ok<T>(response: Promise<{ data?: T; error?: Problem }>): Promise<T> {
  const { data, error } = await response;
  if (error) throw new Error(`${error.code}: ${error.detail}`);
  return data as T;
}

// Sends a file as a form.
function bodySerializer({ file }: { file: Blob }): FormData {
  const form = new FormData();
  form.append("file", file);
  return form;
}

session(async ({ baseUrl, email, password }) => {
  const assay = createClient<paths>({ baseUrl });
  const { token } = await ok(
    assay.POST("/api/token/login", { body: { Email: email, Password: password } }),
  );
  assay.use({
    onRequest({ request }) {
      request.headers.set("Authorization", `Bearer ${token}`);
    },
  });
  return {
    createProject: async (Name) => (await ok(assay.POST("/api/projects", { body: { Name } }))).Id,
    createNamelessProject: async () => {
      const { error, response } = await assay.POST("/api/projects", { body: { Name: "" } });
      const pointers = error?.errors?.map(({ pointer }) => pointer) ?? [];
      return { status: response.status, code: error?.code ?? "", pointers };
    },
    createTestSet: async (projectId, Name) => {
      const params = { path: { projectId } };
      return (await ok(assay.POST("/api/projects/{projectId}/testsets", { params, body: { Name } }))).Id;
    },
    uploadReport: async (projectId, testSetId, file) => {
      const execution = await ok(
        assay.POST("/api/projects/{projectId}/testsets/{testSetId}/results", {
          params: { path: { projectId, testSetId } },
          body: { file },
          bodySerializer,
        }),
      );
      return [execution.Id, execution.Statistic.TestCasesTotal];
    },
    exportJUnit: (executionId) =>
      ok(
        assay.GET("/api/executions/{executionId}/junit", {
          params: { path: { executionId } },
          parseAs: "blob",
        }),
      ),
    startExecution: async (projectId, testSetId) => {
      const execution = await ok(
        assay.POST("/api/projects/{projectId}/testsets/{testSetId}/executions", {
          params: { path: { projectId, testSetId } },
          body: { Mode: "External" },
        }),
      );
      return execution.Id;
    },
    uploadArtifact: async (executionId, name, file) => {
      await ok(
        assay.PUT("/api/executions/{executionId}/results/artifacts/{name}", {
          params: { path: { executionId, name } },
          body: { file },
          bodySerializer,
        }),
      );
    },
    listArtifacts: async (executionId) => {
      const params = { path: { executionId } };
      const artifacts = await ok(assay.GET("/api/executions/{executionId}/results/artifacts", { params }));
      return Object.fromEntries(artifacts.map(({ Name, Uri }) => [Name, Uri]));
    },
    download: ({ artifactId, name, ...query }) =>
      ok(
        assay.GET("/api/artifacts/{artifactId}/{name}", {
          params: { path: { artifactId, name }, query },
          parseAs: "blob",
        }),
      ),
    listTestCases: async (projectId, limit, cursor) => {
      const params = { path: { projectId }, query: { limit, cursor } };
      const listed = assay.GET("/api/projects/{projectId}/testcases", { params });
      const names = (await ok(listed)).map(({ Identifier }) => Identifier);
      return { names, link: (await listed).response.headers.get("Link") };
    },
  };
});
