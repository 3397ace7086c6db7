"""The session with the client of openapi-generator for `python`."""

import json

import generated as api
from session import session


class Session:
    def __init__(self, url, email, password):
        client = api.ApiClient(api.Configuration(host=url))
        token = api.TokensApi(client).login(api.LoginInput(Email=email, Password=password)).token
        client = api.ApiClient(api.Configuration(host=url, access_token=token))
        self.projects = api.ProjectsApi(client)
        self.sets = api.TestSetsApi(client)
        self.results = api.ResultsApi(client)
        self.executions = api.ExecutionsApi(client)
        self.cases = api.TestCasesApi(client)

    def create_project(self, name):
        return self.projects.create_project(api.ProjectInput(Name=name)).id

    def create_nameless_project(self):
        try:
            self.projects.create_project(api.ProjectInput(Name=""))
        except api.ApiException as error:
            problem = json.loads(error.body)
            return error.status, problem["code"], [one["pointer"] for one in problem["errors"]]

    def create_test_set(self, project, name):
        return self.sets.create_test_set(project, api.TestSetInput(Name=name)).id

    def upload_report(self, project, test_set, path):
        file = (path.name, path.read_bytes())
        execution = self.results.upload_results(project, test_set, file)
        return execution.id, execution.statistic.test_cases_total

    def export_junit(self, execution):
        return bytes(self.results.export_results_by_id(execution))

    def start_execution(self, project, test_set):
        external = api.StartExecutionInput(Mode=api.ExecutionMode.EXTERNAL)
        started = self.executions.start_execution(
            project, test_set, start_execution_input=external
        )
        return started.id

    def upload_artifact(self, execution, name, path):
        self.results.upload_artifact_by_id(execution, name, (path.name, path.read_bytes()))

    def list_artifacts(self, execution):
        artifacts = self.results.list_artifacts_by_id(execution)
        return {artifact.name: artifact.uri for artifact in artifacts}

    def download(self, artifact, name, customer, expires, signature):
        link = {"customer": customer, "expires": expires, "signature": signature}
        return bytes(self.results.download_artifact(artifact, name, **link))

    def list_test_cases(self, project, limit, cursor):
        answer = self.cases.list_test_cases_with_http_info(project, limit=limit, cursor=cursor)
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return [case.identifier for case in answer.data], headers.get("link")


session(Session)
