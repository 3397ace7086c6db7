//! Comparison of the catalog with an execution service.

use std::{collections::BTreeSet, future::ready, sync::Mutex};

use assay_catalog::{Executed, Source, Wrong, verify};
use assay_events::{KnownExecutions, KnownReports};
use assay_proto::{
    CustomerId, EnvironmentId, ExecutionId, ExecutionStatus, Fault, ProjectId, SubjectId,
    TestCaseId, TestPlanId, TestReportId, TestResult, TestSetId,
    events::{ExecutionChanged, ReportsChanged},
};
use sqlx::PgPool;

use crate::{shown::Shown, world::World};

/// An execution service with one project. It remembers the number of test cases in each question.
#[derive(Default)]
struct Executions {
    ended: Vec<ReportsChanged>,
    plans: BTreeSet<TestPlanId>,
    changed: Vec<ExecutionChanged>,
    asked: Mutex<Vec<usize>>,
}

impl Executions {
    fn known(&self) -> KnownReports {
        KnownReports { ended: self.ended.clone(), pending: Vec::new(), plans: self.plans.clone() }
    }
}

impl Source for Executions {
    fn executed(
        &self,
        _: Option<(CustomerId, TestCaseId)>,
    ) -> impl Future<Output = Result<Vec<Executed>, Fault>> + Send {
        ready(Ok(Vec::new()))
    }

    fn reports(
        &self,
        _: CustomerId,
        cases: &[TestCaseId],
    ) -> impl Future<Output = Result<KnownReports, Fault>> + Send {
        self.asked.lock().unwrap().push(cases.len());
        ready(Ok(self.known()))
    }

    fn executions(
        &self,
        _: CustomerId,
        _: ProjectId,
    ) -> impl Future<Output = Result<KnownExecutions, Fault>> + Send {
        ready(Ok(KnownExecutions { executions: self.changed.clone(), reports: self.known() }))
    }
}

#[tokio::test]
async fn a_comparison_reads_few_test_cases_with_long_histories_at_once() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for identifier in ["login", "logout", "pay", "ship"] {
        user.case(&project, identifier).await;
    }
    let add = "insert into test_report (customer_id, id, test_case_id, test_plan_id, execution_number,
                   result, status, average_duration_in_sec, revision)
               select customer_id, gen_random_uuid(), id, gen_random_uuid(), n, 'Passed', 'InReview', 1, 1
               from test_case, generate_series(1, 6000) as n";
    sqlx::query(add).execute(&world.db).await.unwrap();

    let source = Executions::default();
    let compared = verify(&world.db, &source, Wrong::Kept, |_| ()).await.unwrap();
    assert_eq!(compared, (1, 4 * 6000), "the reports, and not the test cases, which show none");
    assert_eq!(*source.asked.lock().unwrap(), [2, 2]);
}

#[tokio::test]
async fn a_comparison_writes_no_reports_that_are_right() {
    let shown = Shown::start().await;
    let report = |number| shown.report(TestReportId::new(), number, 1, TestResult::Passed);
    let reports = shown.reports(ExecutionId::new(), (1..=2000).map(report).collect());
    shown.apply_reports(&reports).await;
    let db = &shown.world.db;
    let size = async || {
        let size = sqlx::query_scalar("select pg_relation_size('test_report')");
        let size: i64 = size.fetch_one(db).await.unwrap();
        size
    };
    let before = size().await;

    let source = Executions { ended: vec![reports], ..Executions::default() };
    let compared = verify(db, &source, Wrong::Kept, |one| println!("{one}")).await.unwrap();
    assert_eq!(compared, (1, 0));
    assert_eq!(size().await, before, "rows that are written and rolled back stay until a vacuum");
}

/// The differences, as an operator reads them.
async fn found(db: &PgPool, source: &Executions) -> Vec<String> {
    let mut found = Vec::new();
    verify(db, source, Wrong::Kept, |one| found.push(one.to_string())).await.unwrap();
    found
}

#[tokio::test]
async fn a_plan_that_was_executed_is_frozen_again() {
    let shown = Shown::start().await;
    let report = shown.report(TestReportId::new(), 1, 1, TestResult::Passed);
    let reports = shown.reports(ExecutionId::new(), vec![report]);
    shown.apply_reports(&reports).await;
    let plans = BTreeSet::from([TestPlanId::from_record(&shown.plan.id).unwrap()]);
    let source = Executions { ended: vec![reports], plans, ..Executions::default() };

    // The catalog is restored from a backup that is older than the execution.
    let db = &shown.world.db;
    let thawed = format!(
        r#"test plan {}: shows {{"frozen":false}}, but should show {{"frozen":true}}"#,
        shown.plan.id
    );
    assert_eq!(found(db, &source).await, [&*thawed]);
    assert_eq!(found(db, &source).await, [&*thawed], "a comparison changes nothing");
    assert_eq!(verify(db, &source, Wrong::Repaired, |_| ()).await.unwrap(), (1, 1));
    assert_eq!(found(db, &source).await, [""; 0]);
    let frozen = sqlx::query_scalar("select count(*) from test_plan where frozen_at is not null");
    let frozen: i64 = frozen.fetch_one(db).await.unwrap();
    assert_eq!(frozen, 1);
}

#[tokio::test]
async fn records_of_executions_that_the_catalog_lacks_are_found() {
    let shown = Shown::start().await;
    let (set, subject) = (TestSetId::new(), SubjectId::new());
    let (environment, plan) = (EnvironmentId::new(), TestPlanId::new());
    let mut execution = shown.execution(ExecutionId::new(), 1, ExecutionStatus::Completed);
    execution.test_set_id = set.to_string();
    let statistic = execution.statistic.as_mut().unwrap();
    statistic.software_version_id = Some(subject.to_string());
    statistic.environment_id = Some(environment.to_string());
    let plans = BTreeSet::from([plan]);
    let source = Executions { plans, changed: vec![execution], ..Executions::default() };

    let found = found(&shown.world.db, &source).await;
    for lacking in [
        format!("test plan {plan}: has results, but the catalog lacks it"),
        format!("test set {set}: has executions, but the catalog lacks it"),
        format!("subject {subject}: has executions, but the catalog lacks it"),
        format!("environment {environment}: has executions, but the catalog lacks it"),
    ] {
        assert!(found.iter().any(|one| one.starts_with(&lacking)), "{lacking}: {found:#?}");
    }
}
