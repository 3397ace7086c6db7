//! Runs, which are executions.

use assay_proto::{
    ExecutionStatus,
    execution::{
        CompleteExecutionRequest, ExecutionEntry, ExecutionSummary, GetExecutionSummaryRequest,
        ListExecutionsRequest, NumberedKind, NumberedRecord, OpenExecutionInput,
        OpenExecutionRequest,
    },
};
use axum::extract::Request;
use serde_json::{Map, Value, json};

use super::{
    Session,
    call::Call,
    cases::{object, text},
    number::{details, record},
    page::{self, Next, Paging},
    run_name,
};
use crate::{problem::Problem, services::Executions};

/// The fields of a run that only its clients use.
const DETAILS: [&str; 6] =
    ["name", "description", "refs", "milestone_id", "include_all", "case_ids"];

/// Maximum time until the first results of a run, in seconds: the tests may run in between.
const GRACE: i32 = 86_400;

impl Session {
    /// Opens the execution of a run.
    pub(super) async fn add_run(&self, project: i64, request: Request) -> Result<Value, Problem> {
        let (project_id, body) = (self.project(project).await?, object(request).await?);
        let name = text(&body, "name").ok_or_else(|| Problem::invalid("name", "is required"))?;
        let input = OpenExecutionInput {
            project: project_id.clone(),
            test_set: run_name::test_set(name).to_owned(),
            grace_in_sec: Some(GRACE),
            ..OpenExecutionInput::default()
        };
        let request =
            OpenExecutionRequest { execution: Some(input), ..OpenExecutionRequest::default() };
        let mut executions: Executions = self.client();
        let opened = executions.open_execution(self.caller.call(request)).await?;
        let opened = opened.into_inner().message().await?.ok_or_else(Problem::internal)?;
        let mut details = chosen(body);
        details.entry("include_all").or_insert(true.into());
        let record = record(&opened.id, &project_id, &Value::Object(details));
        let run = self.assign_one(Some(&project_id), NumberedKind::Run, record).await?;
        self.run(run.number).await
    }

    pub(super) async fn run(&self, number: i64) -> Result<Value, Problem> {
        let run = self.find(NumberedKind::Run, number).await?;
        self.of_run(&run).await
    }

    pub(super) async fn update_run(&self, number: i64, request: Request) -> Result<Value, Problem> {
        let run = self.find(NumberedKind::Run, number).await?;
        let changes = chosen(object(request).await?);
        let run = self.change(NumberedKind::Run, &run, changes).await?;
        self.of_run(&run).await
    }

    /// Completes the execution of a run. Closing it again has no effect.
    pub(super) async fn close_run(&self, number: i64) -> Result<Value, Problem> {
        let run = self.find(NumberedKind::Run, number).await?;
        let request = CompleteExecutionRequest {
            project_id: run.key.clone(),
            id: run.scope_id.clone(),
            reporter: None,
        };
        let mut executions: Executions = self.client();
        executions.complete_execution(self.caller.call(request)).await?;
        self.of_run(&run).await
    }

    pub(super) async fn runs(&self, call: &Call, project: i64) -> Result<Value, Problem> {
        let (project_id, paging) = (self.project(project).await?, Paging::of(call)?);
        let request = ListExecutionsRequest {
            project_id: project_id.clone(),
            page: Some(paging.rest()),
            archived: Some(false),
            ..Default::default()
        };
        let mut executions: Executions = self.client();
        let list = executions.list_executions(self.caller.call(request)).await?;
        let (found, next) = paging.read(list).await?;
        let records = found.iter().map(|entry| record(&entry.id, &project_id, &Value::Null));
        let numbered = self.assign(Some(&project_id), NumberedKind::Run, records.collect()).await?;
        let is_sought = |entry: &ExecutionEntry| match call.parameter("is_completed") {
            Some("0") => !has_ended(entry),
            Some("1") => has_ended(entry),
            _ => true,
        };
        let rendered = numbered.iter().zip(&found).filter(|(_, entry)| is_sought(entry));
        let rendered = rendered.map(|(run, entry)| rendered_run(project, run, entry, None));
        Ok(page::of(
            call,
            "runs",
            &rendered.collect::<Vec<_>>(),
            next.map(|cursor| Next(Some(cursor))),
        ))
    }

    async fn of_run(&self, run: &NumberedRecord) -> Result<Value, Problem> {
        let ExecutionSummary { execution, url, .. } = self.summary(run).await?;
        let project = self.project_number(&run.key).await?;
        Ok(rendered_run(project, run, &execution.unwrap_or_default(), url.as_deref()))
    }

    /// Returns the outcome of the execution of a run.
    pub(super) async fn summary(&self, run: &NumberedRecord) -> Result<ExecutionSummary, Problem> {
        let request = GetExecutionSummaryRequest { project_id: None, id: run.scope_id.clone() };
        let mut executions: Executions = self.client();
        let summary = executions.get_execution_summary(self.caller.call(request)).await?;
        Ok(summary.into_inner())
    }
}

/// Returns the details of a run in a body.
fn chosen(body: Map<String, Value>) -> Map<String, Value> {
    body.into_iter().filter(|(field, _)| DETAILS.contains(&field.as_str())).collect()
}

fn has_ended(entry: &ExecutionEntry) -> bool {
    matches!(entry.status(), ExecutionStatus::Completed | ExecutionStatus::Canceled)
}

fn rendered_run(
    project: i64,
    run: &NumberedRecord,
    entry: &ExecutionEntry,
    url: Option<&str>,
) -> Value {
    let details = details(run);
    let detail = |name: &str| details.get(name).cloned().unwrap_or_default();
    let name = details.get("name").cloned().unwrap_or_else(|| entry.test_set_name.clone().into());
    let counts = entry.statistic.clone().unwrap_or_default();
    let seconds = |time: assay_proto::Timestamp| time.0.timestamp();
    json!({
        "id": run.number, "name": name, "description": detail("description"),
        "suite_id": project, "project_id": project, "milestone_id": detail("milestone_id"),
        "refs": detail("refs"), "include_all": details.get("include_all").unwrap_or(&Value::Bool(true)),
        "is_completed": has_ended(entry), "config": null, "config_ids": [], "plan_id": null,
        "assignedto_id": null,
        "passed_count": counts.test_cases_passed,
        "failed_count": counts.test_cases_failed + counts.test_cases_with_error,
        "blocked_count": counts.test_cases_aborted, "retest_count": counts.test_cases_canceled,
        "untested_count": counts.test_cases_pending,
        "created_on": entry.request_time.map(seconds),
        "completed_on": entry.completion_date_time.map(seconds),
        "url": url,
    })
}
