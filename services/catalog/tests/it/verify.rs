//! Comparison of the catalog with an execution service.

use std::{future::ready, sync::Mutex};

use assay_catalog::{Executed, Source, Wrong, verify};
use assay_events::{KnownExecutions, KnownReports};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestCaseId, TestReportId, TestResult,
    events::ReportsChanged,
};

use crate::{shown::Shown, world::World};

/// An execution service with one project. It remembers the number of test cases in each question.
#[derive(Default)]
struct Executions {
    ended: Vec<ReportsChanged>,
    asked: Mutex<Vec<usize>>,
}

impl Executions {
    fn known(&self) -> KnownReports {
        KnownReports { ended: self.ended.clone(), pending: Vec::new() }
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
        ready(Ok(KnownExecutions { executions: Vec::new(), reports: self.known() }))
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
