//! The gRPC service of statistics.

use assay_auth::Caller;
use assay_ledger::execution::store::find;
use assay_proto::{
    CustomerId, EnvironmentId, ExecutionId, Fault, ProjectId, TestCaseId, TestSetId,
    catalog::FindRecordsRequest,
    execution::{
        ExecutionStatisticBatch, GetGridRequest, Grid, ListDifferencesRequest,
        ListExecutionStatisticsRequest, ListTestCaseRunsRequest, ResultDifferenceBatch,
        TestCaseRun, TestCaseRunBatch, statistics_service_server,
    },
};
use assay_records::Check;
use assay_rpc::list::{self, Batches, Rows, Slice};
use sqlx::PgPool;
use tonic::{Code, Request, Response, Status};

use super::{
    comparison,
    filter::Filter,
    flakiness,
    grid::{self, Part},
    store::{self, Series},
};
use crate::{catalog::Catalog, parent};

/// The gRPC service of statistics.
pub(crate) struct StatisticsService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

impl StatisticsService {
    /// Fails if an environment does not exist, unless the test set was executed in it before it was
    /// deleted.
    async fn check_environment(
        &self,
        caller: &Caller,
        project_id: &str,
        set: TestSetId,
        id: EnvironmentId,
    ) -> Result<(), Status> {
        if store::has_environment(&self.db, caller.customer, set, id).await? {
            return Ok(());
        }
        let environment = FindRecordsRequest {
            project_id: project_id.to_owned(),
            environment_id: Some(id.to_string()),
            ..Default::default()
        };
        let found = self.catalog.find(caller, environment).await;
        found.map_err(|status| match status.code() {
            Code::NotFound => {
                Fault::invalid("environmentId", "no such environment in this project").into()
            }
            _ => status,
        })
    }
}

#[tonic::async_trait]
impl statistics_service_server::StatisticsService for StatisticsService {
    type ListExecutionStatisticsStream = Batches<ExecutionStatisticBatch>;
    type ListDifferencesStream = Batches<ResultDifferenceBatch>;
    type ListTestCaseRunsStream = Batches<TestCaseRunBatch>;

    async fn list_execution_statistics(
        &self,
        request: Request<ListExecutionStatisticsRequest>,
    ) -> Result<Response<Self::ListExecutionStatisticsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let set = TestSetId::from_path(&request.test_set_id)?;
        let filter = Filter::of(&request)?;
        let parent = FindRecordsRequest {
            project_id: request.project_id.clone(),
            test_set_id: Some(request.test_set_id),
            ..Default::default()
        };
        parent::check_exists(&self.db, &self.catalog, &caller, project, parent).await?;
        if let Some(environment) = filter.environment {
            self.check_environment(&caller, &request.project_id, set, environment).await?;
        }
        let (db, customer) = (self.db.clone(), caller.customer);
        list::answer(request.page, move |slice| {
            let (db, filter) = (db.clone(), filter.clone());
            async move { store::list(&db, customer, set, &filter, &slice).await }
        })
        .await
    }

    async fn get_grid(&self, request: Request<GetGridRequest>) -> Result<Response<Grid>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let set = TestSetId::from_path(&request.test_set_id)?;
        let part = Part::of(&request)?;
        let parent = FindRecordsRequest {
            project_id: request.project_id,
            test_set_id: Some(request.test_set_id),
            ..Default::default()
        };
        parent::check_exists(&self.db, &self.catalog, &caller, project, parent).await?;
        Ok(Response::new(grid::of(&self.db, caller.customer, project, set, &part).await?))
    }

    async fn list_differences(
        &self,
        request: Request<ListDifferencesRequest>,
    ) -> Result<Response<Self::ListDifferencesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let id = ExecutionId::from_path(&request.execution_id)?;
        let other = request.other_execution_id.as_deref();
        let other = ExecutionId::from_field_if_any("otherExecutionId", other)?;
        let state = find(&self.db, customer, project, id).await?;
        if let Some(other) = other {
            let project = Some(ProjectId::from_record(&state.execution.project_id)?);
            find(&self.db, customer, project, other).await?;
        }
        // An execution does not differ from itself.
        let before = state.baseline.first().map_or(id, |before| ExecutionId(*before));
        let other = other.unwrap_or(before);
        let db = self.db.clone();
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move { comparison::list(&db, customer, (id, other), &slice).await }
        })
        .await
    }

    async fn list_test_case_runs(
        &self,
        request: Request<ListTestCaseRunsRequest>,
    ) -> Result<Response<Self::ListTestCaseRunsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let series = series(&request)?;
        let ListTestCaseRunsRequest { project_id, test_case_id, page, .. } = request;
        let project = ProjectId::from_path(&project_id)?;
        let case = TestCaseId::from_path(&test_case_id)?;
        let test_case_id = Some(test_case_id);
        let parent = FindRecordsRequest { project_id, test_case_id, ..Default::default() };
        parent::check_exists(&self.db, &self.catalog, &caller, project, parent).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        list::answer(page, move |slice| {
            let (db, series) = (db.clone(), series.clone());
            async move { runs(&db, customer, project, case, &series, slice).await }
        })
        .await
    }
}

/// Parses and checks the filter of a request.
fn series(request: &ListTestCaseRunsRequest) -> Result<Series, Fault> {
    let mut check = Check::default();
    check.text("branch", request.branch.as_deref().unwrap_or_default());
    let set = TestSetId::from_field_if_any("testSetId", request.test_set_id.as_deref());
    let set = check.read(set)?.flatten();
    let environment =
        EnvironmentId::from_field_if_any("environmentId", request.environment_id.as_deref());
    let environment = check.read(environment)?.flatten();
    check.done()?;
    let branch = request.branch.clone().filter(|branch| !branch.is_empty());
    Ok(Series { branch, set, environment })
}

/// Lists runs of a test case with their scores. Reads some more runs, which the scores depend on.
async fn runs(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
    series: &Series,
    slice: Slice,
) -> Result<Rows<TestCaseRun>, Fault> {
    let limit = usize::try_from(slice.limit).unwrap_or_default();
    let earlier = i64::try_from(flakiness::WINDOW).unwrap_or_default() - 1;
    let more = Slice { limit: slice.limit + earlier, ..slice };
    let mut runs = store::runs(db, customer, project, case, series, &more).await?;
    flakiness::score(&mut runs.items);
    // The last ones have too few earlier runs for a score.
    let scored = runs.items.len().saturating_sub(flakiness::WINDOW - 1).max(1);
    runs.truncate(if runs.is_cut() { scored.min(limit) } else { limit });
    Ok(runs)
}
