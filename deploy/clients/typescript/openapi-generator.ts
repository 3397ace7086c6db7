// The session with the client of openapi-generator for `typescript-fetch`.

import * as api from "./generated";
import { session } from "./session";

session(async ({ baseUrl, email, password }) => {
  let accessToken: string | undefined;
  const configuration = new api.Configuration({
    basePath: baseUrl,
    accessToken: () => accessToken ?? "",
  });
  const loginInput = { email, password };
  const tokens = new api.TokensApi(new api.Configuration({ basePath: baseUrl }));
  accessToken = (await tokens.login({ loginInput })).token;
  const projects = new api.ProjectsApi(configuration);
  const results = new api.ResultsApi(configuration);
  return {
    createProject: async (name) => (await projects.createProject({ projectInput: { name } })).id,
    createNamelessProject: async () => {
      const refused = (error: unknown) => {
        if (error instanceof api.ResponseError) return error.response;
        throw error;
      };
      const response = await projects
        .createProjectRaw({ projectInput: { name: "" } })
        .then(({ raw }) => raw, refused);
      const { code, errors } = api.ProblemFromJSON(await response.json());
      return { status: response.status, code, pointers: errors?.map(({ pointer }) => pointer) ?? [] };
    },
    createTestSet: async (projectId, name) => {
      const sets = new api.TestSetsApi(configuration);
      return (await sets.createTestSet({ projectId, testSetInput: { name } })).id;
    },
    uploadReport: async (projectId, testSetId, file) => {
      const execution = await results.uploadResults({ projectId, testSetId, file });
      return [execution.id, execution.statistic.testCasesTotal];
    },
    exportJUnit: (executionId) => results.exportResultsById({ executionId }),
    startExecution: async (projectId, testSetId) => {
      const executions = new api.ExecutionsApi(configuration);
      const startExecutionInput = { mode: api.ExecutionMode.External };
      return (await executions.startExecution({ projectId, testSetId, startExecutionInput })).id;
    },
    uploadArtifact: async (executionId, name, file) => {
      await results.uploadArtifactById({ executionId, name, file });
    },
    listArtifacts: async (executionId) => {
      const artifacts = await results.listArtifactsById({ executionId });
      return Object.fromEntries(artifacts.map(({ name, uri }) => [name, uri]));
    },
    download: (link) => results.downloadArtifact(link),
    listTestCases: async (projectId, limit, cursor) => {
      const cases = new api.TestCasesApi(configuration);
      const response = await cases.listTestCasesRaw({ projectId, limit, cursor });
      const names = (await response.value()).map(({ identifier }) => identifier);
      return { names, link: response.raw.headers.get("Link") };
    },
  };
});
