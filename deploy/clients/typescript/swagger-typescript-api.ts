// The session with the client of swagger-typescript-api.

import { Api, ExecutionMode, type HttpResponse, type Problem } from "./generated/assay";
import { session } from "./session";

session(async ({ baseUrl, email, password }) => {
  const assay = new Api<string>({
    baseUrl,
    securityWorker: (token) => (token ? { headers: { Authorization: `Bearer ${token}` } } : {}),
  });
  const login = await assay.api.login({ Email: email, Password: password });
  assay.setSecurityData(login.data.token);
  return {
    createProject: async (Name) => (await assay.api.createProject({ Name })).data.Id,
    createNamelessProject: async () => {
      const refused = (response: HttpResponse<unknown, Problem>) => response;
      const response = await assay.api.createProject({ Name: "" }).catch(refused);
      const { status, error } = response;
      return { status, code: error.code, pointers: error.errors?.map(({ pointer }) => pointer) ?? [] };
    },
    createTestSet: async (projectId, Name) =>
      (await assay.api.createTestSet(projectId, { Name })).data.Id,
    uploadReport: async (projectId, testSetId, file) => {
      const { data } = await assay.api.uploadResults(projectId, testSetId, { file });
      return [data.Id, data.Statistic.TestCasesTotal];
    },
    exportJUnit: async (executionId) => (await assay.api.exportResultsById(executionId)).blob(),
    startExecution: async (projectId, testSetId) =>
      (await assay.api.startExecution(projectId, testSetId, { Mode: ExecutionMode.External })).data.Id,
    uploadArtifact: async (executionId, name, file) => {
      await assay.api.uploadArtifactById(executionId, name, { file });
    },
    listArtifacts: async (executionId) => {
      const { data } = await assay.api.listArtifactsById(executionId);
      return Object.fromEntries(data.map(({ Name, Uri }) => [Name, Uri]));
    },
    download: async ({ artifactId, name, ...query }) =>
      (await assay.api.downloadArtifact(artifactId, name, query)).blob(),
    listTestCases: async (projectId, limit, cursor) => {
      const { data, headers } = await assay.api.listTestCases(projectId, { limit, cursor });
      return { names: data.map(({ Identifier }) => Identifier), link: headers.get("Link") };
    },
  };
});
