// The session with the client of orval.

import * as api from "./generated/assay";
import { connection } from "./orval-fetch";
import { session } from "./session";

// Returns the data of a response, or throws the problem.
function ok<R extends { status: number; data: unknown }>(response: R) {
  if (response.status >= 300) throw new Error(JSON.stringify(response.data));
  return response.data as Extract<R, { status: 200 | 201 }>["data"];
}

session(async ({ baseUrl, email, password }) => {
  connection.baseUrl = baseUrl;
  connection.token = ok(await api.login({ Email: email, Password: password })).token;
  return {
    createProject: async (Name) => ok(await api.createProject({ Name })).Id,
    createNamelessProject: async () => {
      const { status, data } = await api.createProject({ Name: "" });
      if (status !== 422) throw new Error(`${status}`);
      return { status, code: data.code, pointers: data.errors?.map(({ pointer }) => pointer) ?? [] };
    },
    createTestSet: async (projectId, Name) => ok(await api.createTestSet(projectId, { Name })).Id,
    uploadReport: async (projectId, testSetId, file) => {
      const execution = ok(await api.uploadResults(projectId, testSetId, { file }));
      return [execution.Id, execution.Statistic.TestCasesTotal];
    },
    exportJUnit: async (executionId) => ok(await api.exportResultsById(executionId)),
    startExecution: async (projectId, testSetId) =>
      ok(await api.startExecution(projectId, testSetId, { Mode: "External" })).Id,
    uploadArtifact: async (executionId, name, file) => {
      ok(await api.uploadArtifactById(executionId, name, { file }));
    },
    listArtifacts: async (executionId) => {
      const artifacts = ok(await api.listArtifactsById(executionId));
      return Object.fromEntries(artifacts.map(({ Name, Uri }) => [Name, Uri]));
    },
    download: async ({ artifactId, name, ...query }) =>
      ok(await api.downloadArtifact(artifactId, name, query)),
    listTestCases: async (projectId, limit, cursor) => {
      const response = await api.listTestCases(projectId, { limit, cursor });
      const names = ok(response).map(({ Identifier }) => Identifier);
      return { names, link: response.headers.get("Link") };
    },
  };
});
