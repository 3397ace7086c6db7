//! Test services. The id in a request selects the behaviour.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use assay_proto::{
    Batch as _, ExecutionStatus, Fault, TestResult,
    catalog::{
        CreateProjectRequest, CreateTestSetRequest, DeleteProjectRequest, DeleteTestSetRequest,
        ExcludeTestCasesRequest, GetProjectRequest, GetTestSetRequest, IncludeTestCasesRequest,
        IncludedTestCaseBatch, ListIncludedTestCasesRequest, ListProjectsRequest,
        ListTestSetsOfTestCaseRequest, ListTestSetsRequest, Project, ProjectBatch, TestCase,
        TestSet, TestSetBatch, TestSetEntry, UpdateProjectRequest, UpdateTestSetRequest,
        project_service_server::{ProjectService, ProjectServiceServer},
        test_set_service_server::{TestSetService, TestSetServiceServer},
    },
    execution::{
        AddReportRequest, Execution, ExportResultsRequest, ReportResultsRequest, ReportedResults,
        ResultsBatch, UploadResultsRequest,
        result_service_server::{ResultService, ResultServiceServer},
    },
};
use futures::{StreamExt, stream, stream::BoxStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming, async_trait, service::Routes};

type Answer<T> = Result<Response<T>, Status>;
type Messages<T> = BoxStream<'static, Result<T, Status>>;

pub(crate) fn routes(uploads: mpsc::UnboundedSender<Uploaded>, hanging: Hanging) -> Routes {
    let catalog = Catalog { hanging };
    Routes::new(ProjectServiceServer::new(catalog.clone()))
        .add_service(TestSetServiceServer::new(catalog))
        .add_service(ResultServiceServer::new(Results(uploads)))
}

/// Calls that hang until the test lets them fail.
#[derive(Clone, Default)]
pub(crate) struct Hanging {
    calls: Arc<AtomicUsize>,
    fail: CancellationToken,
}

impl Hanging {
    async fn call(&self) -> Status {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.fail.cancelled().await;
        Fault::Unavailable("canary").into()
    }

    /// The number of calls so far.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    pub(crate) fn fail(&self) {
        self.fail.cancel();
    }
}

#[derive(Clone)]
struct Catalog {
    hanging: Hanging,
}

fn project(id: &str, name: String) -> Project {
    Project { id: id.to_owned(), name, data_version: "1".to_owned(), ..Project::default() }
}

fn batch(names: &[&str], next_cursor: Option<&str>) -> ProjectBatch {
    let entry = |name: &&str| assay_proto::catalog::ProjectEntry {
        name: (*name).to_owned(),
        ..Default::default()
    };
    let next_cursor = next_cursor.map(str::to_owned);
    ProjectBatch::render(&names.iter().map(entry).collect::<Vec<_>>(), next_cursor).unwrap()
}

#[async_trait]
impl ProjectService for Catalog {
    type ListProjectsStream = Messages<ProjectBatch>;

    async fn list_projects(
        &self,
        request: Request<ListProjectsRequest>,
    ) -> Answer<Messages<ProjectBatch>> {
        let page = request.into_inner().page.unwrap();
        let aborted = || Err(Status::internal("canary"));
        let batches = match page.q.as_deref() {
            Some("nothing") => vec![],
            Some("breaks off") => vec![Ok(batch(&["a"], None)), aborted()],
            Some("fails") => return Err(Fault::invalid("cursor", "is none").into()),
            Some("endless") => {
                let long = "x".repeat(64 << 10);
                let batches = stream::repeat_with(move || Ok(batch(&[&long], None)));
                return Ok(Response::new(batches.boxed()));
            }
            _ if page.limit == Some(2) => vec![Ok(batch(&["a", "b"], Some("b/2")))],
            _ => [&["a", "b"][..], &[], &["c"]].map(|names| Ok(batch(names, None))).into(),
        };
        Ok(Response::new(stream::iter(batches).boxed()))
    }

    async fn get_project(&self, request: Request<GetProjectRequest>) -> Answer<Project> {
        match request.into_inner().id.as_str() {
            "gone" => Err(Fault::NotFound("project").into()),
            "bug" => Err(Fault::internal("canary").into()),
            "odd" => Err(Status::data_loss("canary")),
            "slow" => Err(Status::deadline_exceeded("canary")),
            "busy" => Err(Fault::Busy(Duration::from_millis(2500)).into()),
            "hangs" => Err(self.hanging.call().await),
            "down" => Err(Fault::Unavailable("canary").into()),
            id => Ok(Response::new(project(id, "a".repeat(4000)))),
        }
    }

    async fn create_project(&self, request: Request<CreateProjectRequest>) -> Answer<Project> {
        Ok(Response::new(project("new", request.into_inner().project.unwrap().name)))
    }

    async fn update_project(&self, request: Request<UpdateProjectRequest>) -> Answer<Project> {
        let request = request.into_inner();
        if request.data_version.is_some_and(|version| version != "1") {
            return Err(Fault::Stale("project").into());
        }
        Ok(Response::new(project(&request.id, request.fields.join(", "))))
    }

    async fn delete_project(&self, _: Request<DeleteProjectRequest>) -> Answer<()> {
        Err(Status::unimplemented(""))
    }
}

/// A set whose cases are streamed in three messages.
fn set_in_messages(id: &str, name: String) -> Vec<Result<TestSet, Status>> {
    let case = |name: &str| TestCase { name: name.to_owned(), ..TestCase::default() };
    let part = |cases: &[&str]| {
        let test_cases = cases.iter().map(|name| case(name)).collect();
        Ok(TestSet { test_cases, ..TestSet::default() })
    };
    let first =
        TestSet { id: id.to_owned(), name, data_version: "7".to_owned(), ..part(&["a"]).unwrap() };
    vec![Ok(first), part(&["b", "c"]), part(&["d"])]
}

fn send(parts: Vec<Result<TestSet, Status>>) -> Response<Messages<TestSet>> {
    Response::new(stream::iter(parts).boxed())
}

#[async_trait]
impl TestSetService for Catalog {
    type ListTestSetsStream = Messages<TestSetBatch>;
    type ListTestSetsOfTestCaseStream = Messages<TestSetBatch>;
    type GetTestSetStream = Messages<TestSet>;
    type UpdateTestSetStream = Messages<TestSet>;
    type ListIncludedTestCasesStream = Messages<IncludedTestCaseBatch>;
    type IncludeTestCasesStream = Messages<TestSet>;

    async fn list_test_sets(
        &self,
        _: Request<ListTestSetsRequest>,
    ) -> Answer<Messages<TestSetBatch>> {
        Err(Status::unimplemented(""))
    }

    async fn list_test_sets_of_test_case(
        &self,
        _: Request<ListTestSetsOfTestCaseRequest>,
    ) -> Answer<Messages<TestSetBatch>> {
        Err(Status::unimplemented(""))
    }

    async fn delete_test_set(&self, _: Request<DeleteTestSetRequest>) -> Answer<()> {
        Err(Status::unimplemented(""))
    }

    async fn get_test_set(&self, request: Request<GetTestSetRequest>) -> Answer<Messages<TestSet>> {
        let GetTestSetRequest { project_id, id, .. } = request.into_inner();
        let mut parts = set_in_messages(&id, project_id.unwrap_or_else(|| "permanent".to_owned()));
        match id.as_str() {
            "gone" => parts.insert(0, Err(Fault::NotFound("test set").into())),
            "breaks off" => {
                parts.extend(set_in_messages("", String::new()));
                parts.push(Err(Status::internal("canary")));
            }
            "long" => parts.extend(set_in_messages("", String::new())),
            "empty" => parts = vec![Ok(TestSet::default())],
            _ => {}
        }
        Ok(send(parts))
    }

    async fn create_test_set(&self, _: Request<CreateTestSetRequest>) -> Answer<TestSetEntry> {
        Ok(Response::new(TestSetEntry { id: "new".to_owned(), ..TestSetEntry::default() }))
    }

    async fn update_test_set(
        &self,
        request: Request<UpdateTestSetRequest>,
    ) -> Answer<Messages<TestSet>> {
        let request = request.into_inner();
        if request.data_version.is_some_and(|version| version != "7") {
            return Err(Fault::Stale("test set").into());
        }
        let mut parts =
            set_in_messages(&request.id, format!("changed {}", request.fields.join(", ")));
        let cases = request.changes.unwrap_or_default().test_cases;
        if let Some(Ok(first)) = parts.first_mut() {
            first.description = cases.last().map(|last| format!("{} to {}", cases.len(), last.id));
        }
        Ok(send(parts))
    }

    async fn list_included_test_cases(
        &self,
        _: Request<ListIncludedTestCasesRequest>,
    ) -> Answer<Messages<IncludedTestCaseBatch>> {
        Err(Status::unimplemented(""))
    }

    async fn include_test_cases(
        &self,
        request: Request<IncludeTestCasesRequest>,
    ) -> Answer<Messages<TestSet>> {
        let ids = request.into_inner().test_cases.into_iter().map(|case| case.id);
        Ok(send(set_in_messages("set", ids.collect::<Vec<_>>().join(", "))))
    }

    async fn exclude_test_cases(&self, _: Request<ExcludeTestCasesRequest>) -> Answer<()> {
        Ok(Response::new(()))
    }
}

/// The number of bytes of each uploaded file; `None` if the upload was aborted.
pub(crate) type Uploaded = Option<Vec<usize>>;

/// Reports an upload when dropped, also if the call is canceled.
struct Report {
    received: Uploaded,
    to: mpsc::UnboundedSender<Uploaded>,
}

impl Drop for Report {
    fn drop(&mut self) {
        let _ = self.to.send(self.received.take());
    }
}

struct Results(mpsc::UnboundedSender<Uploaded>);

impl Results {
    fn report(&self) -> Report {
        Report { received: None, to: self.0.clone() }
    }
}

#[async_trait]
impl ResultService for Results {
    type UploadResultsStream = Messages<Execution>;
    type ExportResultsStream = Messages<ResultsBatch>;

    async fn export_results(
        &self,
        _: Request<ExportResultsRequest>,
    ) -> Answer<Messages<ResultsBatch>> {
        Err(Status::unimplemented(""))
    }

    async fn add_report(&self, _: Request<Streaming<AddReportRequest>>) -> Answer<ReportedResults> {
        Err(Status::unimplemented(""))
    }

    async fn report_results(
        &self,
        request: Request<Streaming<ReportResultsRequest>>,
    ) -> Answer<ReportedResults> {
        let mut requests = request.into_inner();
        let target = requests.message().await?.unwrap().target.unwrap();
        if target.execution_id == "closed" {
            return Err(Fault::NotFound("execution").into());
        }
        let (mut report, mut bytes, mut complete) = (self.report(), 0, false);
        while let Some(request) = requests.message().await? {
            bytes += request.chunk.len();
            complete = request.last;
        }
        report.received = complete.then_some(vec![bytes]);
        Ok(Response::new(ReportedResults {
            accepted: target.lines.into(),
            ..ReportedResults::default()
        }))
    }

    async fn upload_results(
        &self,
        request: Request<Streaming<UploadResultsRequest>>,
    ) -> Answer<Messages<Execution>> {
        let mut requests = request.into_inner();
        let target = requests.message().await?.unwrap().target.unwrap();
        if target.subject_id.as_deref() == Some("wrong") {
            return Err(Fault::invalid("SubjectId", "must be a valid subject id").into());
        }
        let (mut report, mut files, mut complete) = (self.report(), Vec::new(), false);
        while let Some(request) = requests.message().await? {
            if request.file.is_some() || files.is_empty() {
                files.push(0);
            }
            *files.last_mut().unwrap() += request.chunk.len();
            complete = request.last;
        }
        report.received = complete.then_some(files);
        let execution = Execution {
            id: "new".to_owned(),
            project_id: target.project_id,
            tags: target.tags.unwrap_or_default(),
            result: TestResult::Passed.into(),
            status: ExecutionStatus::Completed.into(),
            ..Execution::default()
        };
        Ok(Response::new(stream::iter([Ok(execution)]).boxed()))
    }
}
