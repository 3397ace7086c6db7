"""The session with the client of openapi-python-client."""

from uuid import UUID

from generated import AuthenticatedClient, Client
from generated.api.executions import start_execution
from generated.api.projects import create_project
from generated.api.results import (
    download_artifact,
    export_results_by_id,
    list_artifacts_by_id,
    upload_artifact_by_id,
    upload_results,
)
from generated.api.test_cases import list_test_cases
from generated.api.test_sets import create_test_set
from generated.api.tokens import login
from generated.models import (
    ArtifactInput,
    ExecutionMode,
    LoginInput,
    Problem,
    ProjectInput,
    ReportsInput,
    StartExecutionInput,
    TestSetInput,
)
from generated.types import UNSET, File
from session import session


def file(path):
    return File(payload=path.open("rb"), file_name=path.name)


def ok(answer):
    assert answer is not None and not isinstance(answer, Problem), answer
    return answer


class Session:
    def __init__(self, url, email, password):
        token = login.sync(client=Client(base_url=url), body=LoginInput(email, password))
        self.client = AuthenticatedClient(base_url=url, token=ok(token).token)

    def create_project(self, name):
        return ok(create_project.sync(client=self.client, body=ProjectInput(name))).id

    def create_nameless_project(self):
        answer = create_project.sync_detailed(client=self.client, body=ProjectInput(""))
        problem = answer.parsed
        return answer.status_code.value, problem.code, [error.pointer for error in problem.errors]

    def create_test_set(self, project, name):
        return ok(create_test_set.sync(project, client=self.client, body=TestSetInput(name))).id

    def upload_report(self, project, test_set, path):
        body = ReportsInput(file=file(path))
        execution = ok(upload_results.sync(project, test_set, client=self.client, body=body))
        return execution.id, execution.statistic.test_cases_total

    def export_junit(self, execution):
        return ok(export_results_by_id.sync(execution, client=self.client)).payload.read()

    def start_execution(self, project, test_set):
        body = StartExecutionInput(mode=ExecutionMode.EXTERNAL)
        return ok(start_execution.sync(project, test_set, client=self.client, body=body)).id

    def upload_artifact(self, execution, name, path):
        body = ArtifactInput(file=file(path))
        ok(upload_artifact_by_id.sync(execution, name, client=self.client, body=body))

    def list_artifacts(self, execution):
        artifacts = ok(list_artifacts_by_id.sync(execution, client=self.client))
        return {artifact.name: artifact.uri for artifact in artifacts}

    def download(self, artifact, name, customer, expires, signature):
        artifact, customer = UUID(artifact), UUID(customer)
        link = {"customer": customer, "expires": expires, "signature": signature}
        return ok(download_artifact.sync(artifact, name, client=self.client, **link)).payload.read()

    def list_test_cases(self, project, limit, cursor):
        page = {"limit": limit, "cursor": cursor or UNSET}
        answer = list_test_cases.sync_detailed(project, client=self.client, **page)
        return [case.identifier for case in ok(answer.parsed)], answer.headers.get("Link")


session(Session)
