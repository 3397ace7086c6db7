//! Comparison of the catalog with an execution service.

use std::{future::ready, sync::Mutex};

use assay_catalog::{Executed, Source, Wrong, verify};
use assay_events::{KnownExecutions, KnownReports};
use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId};

use crate::world::World;

/// An execution service without executions. It remembers the number of test cases in each question.
#[derive(Default)]
struct Empty(Mutex<Vec<usize>>);

impl Source for Empty {
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
        self.0.lock().unwrap().push(cases.len());
        ready(Ok(KnownReports::default()))
    }

    fn executions(
        &self,
        _: CustomerId,
        _: ProjectId,
    ) -> impl Future<Output = Result<KnownExecutions, Fault>> + Send {
        ready(Ok(KnownExecutions::default()))
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

    let source = Empty::default();
    let compared = verify(&world.db, &source, Wrong::Kept, |_| ()).await.unwrap();
    assert_eq!(compared, (1, 4 * 6000), "the reports, and not the test cases, which show none");
    assert_eq!(*source.0.lock().unwrap(), [2, 2]);
}
