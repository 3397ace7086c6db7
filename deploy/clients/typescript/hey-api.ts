// The session with the client of @hey-api/openapi-ts.

import * as api from "./generated";
import { client } from "./generated/client.gen";
import { session } from "./session";

session(async ({ baseUrl, email, password }) => {
  client.setConfig({ baseUrl });
  const login = await api.login({ body: { Email: email, Password: password }, throwOnError: true });
  client.setConfig({ baseUrl, auth: () => login.data.token });
  const throwOnError = true;
  return {
    createProject: async (Name) =>
      (await api.createProject({ body: { Name }, throwOnError })).data.Id,
    createNamelessProject: async () => {
      const { error, response } = await api.createProject({ body: { Name: "" } });
      const pointers = error?.errors?.map(({ pointer }) => pointer) ?? [];
      return { status: response?.status ?? 0, code: error?.code ?? "", pointers };
    },
    createTestSet: async (projectId, Name) =>
      (await api.createTestSet({ path: { projectId }, body: { Name }, throwOnError })).data.Id,
    uploadReport: async (projectId, testSetId, file) => {
      const path = { projectId, testSetId };
      const { data } = await api.uploadResults({ path, body: { file }, throwOnError });
      return [data.Id, data.Statistic.TestCasesTotal];
    },
    exportJUnit: async (executionId) =>
      (await api.exportResultsById({ path: { executionId }, throwOnError, parseAs: "blob" })).data as Blob,
    startExecution: async (projectId, testSetId) => {
      const path = { projectId, testSetId };
      return (await api.startExecution({ path, body: { Mode: "External" }, throwOnError })).data.Id;
    },
    uploadArtifact: async (executionId, name, file) => {
      await api.uploadArtifactById({ path: { executionId, name }, body: { file }, throwOnError });
    },
    listArtifacts: async (executionId) => {
      const { data } = await api.listArtifactsById({ path: { executionId }, throwOnError });
      return Object.fromEntries(data.map(({ Name, Uri }) => [Name, Uri]));
    },
    download: async ({ artifactId, name, ...query }) => {
      const file = await api.downloadArtifact({ path: { artifactId, name }, query, throwOnError });
      return file.data as Blob;
    },
    listTestCases: async (projectId, limit, cursor) => {
      const query = { limit, cursor };
      const { data, response } = await api.listTestCases({ path: { projectId }, query, throwOnError });
      return { names: data.map(({ Identifier }) => Identifier), link: response.headers.get("Link") };
    },
  };
});
