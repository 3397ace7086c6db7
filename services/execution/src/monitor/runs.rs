//! The runs that monitors judge, in PostgreSQL. Every statement is bound to one customer.

use std::collections::HashMap;

use assay_judge::{Outcome, monitor::Observation};
use assay_proto::{
    CustomerId, ExecutionId, Fault, MonitorId, TestCaseId,
    catalog::TestCaseName,
    execution::{Monitor, MonitorMeasure},
};
use chrono::{DateTime, Utc};
use sqlx::{AssertSqlSafe, FromRow, PgTransaction};
use uuid::Uuid;

/// Maximum number of test cases of an execution that a monitor looks at.
const MOST: i64 = 1000;

/// A test case of an execution that a monitor looks at.
#[derive(FromRow)]
pub(super) struct Candidate {
    pub(super) id: TestCaseId,
    identifier: String,
    name: String,
    /// Whether it has reached the threshold, and has not recovered.
    pub(super) is_raised: bool,
    /// Whether it may recover with this execution, which is of the test set and the environment in which it has reached
    /// the threshold.
    pub(super) may_recover: bool,
    /// The execution with which it has recovered last.
    recovered_with_id: Option<ExecutionId>,
}

impl Candidate {
    pub(super) fn called(&self) -> TestCaseName {
        TestCaseName { identifier: self.identifier.clone(), name: self.name.clone() }
    }
}

/// Returns a statement that selects the first `$5` of the candidates of the execution `$2` that a statement selects:
/// those that have reached the threshold, then others in an order of the execution, so that each has its turn if there
/// are too many.
fn first(candidates: &str) -> String {
    format!(
        "select * from ({candidates}) as candidate
         order by is_raised desc, hashtextextended($2::uuid::text || case_id::text, 0)
         limit $5"
    )
}

/// Returns the test cases of an execution of which a monitor has to judge the runs: those that did not just
/// pass as before, or are slow for a monitor of durations, and those that have reached its threshold.
pub(super) async fn candidates(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    (id, monitor): (MonitorId, &Monitor),
) -> Result<Vec<Candidate>, Fault> {
    let candidates = first(
        "select r.id as report, r.test_case_id as case_id, r.test_case_identifier as identifier,
                r.test_case_name as called, coalesce(a.raised_until > now(), false) as is_raised,
                a.recovered_with_id, a.raised_by_id
         from test_report r
         left join monitor_alarm a on a.customer_id = $1 and a.monitor_id = $3
             and a.test_case_id = r.test_case_id
         where r.customer_id = $1 and r.execution_id = $2
           and r.result in ('Passed', 'Failed', 'Error')
           and (r.change <> 'None' or a.raised_until > now() or r.total_duration_in_sec >= $4)",
    );
    let candidates = sqlx::query_as(AssertSqlSafe(format!(
        "select case_id as id, identifier, called as name, is_raised, recovered_with_id,
                coalesce(
                    raised.test_set_id = e.test_set_id
                        and raised.environment_id is not distinct from e.environment_id,
                    true
                ) as may_recover
         from ({candidates}) as candidate
         join execution e on e.customer_id = $1 and e.id = $2
         left join execution raised on raised.customer_id = $1 and raised.id = raised_by_id
         order by report"
    )));
    let is_timed = monitor.measure() == MonitorMeasure::Duration;
    let slow = is_timed.then_some(monitor.threshold);
    let candidates = candidates.bind(customer).bind(execution).bind(id).bind(slow).bind(MOST);
    Ok(candidates.fetch_all(&mut **tx).await?)
}

/// An alarm of a monitor that is replayed.
pub(super) struct Alarm {
    pub(super) raised_until: Option<DateTime<Utc>>,
    /// The test set and the environment in which it was raised.
    pub(super) raised_in: (String, Option<String>),
    pub(super) recovered_with: Option<ExecutionId>,
}

/// Returns the test cases of an execution of which a monitor that is replayed has to judge the runs, as
/// [`candidates`] does it.
pub(super) async fn replayed_candidates(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    (execution, at): (ExecutionId, DateTime<Utc>),
    monitor: &Monitor,
    alarms: &HashMap<TestCaseId, Alarm>,
) -> Result<Vec<Candidate>, Fault> {
    let is_raised = |alarm: &Alarm| alarm.raised_until.is_some_and(|until| until > at);
    let raised: Vec<_> =
        alarms.iter().filter(|(_, alarm)| is_raised(alarm)).map(|(case, _)| *case).collect();
    let candidates = first(
        "select id as report, test_case_id as case_id, test_case_identifier as identifier,
                test_case_name as called, test_case_id = any($3) as is_raised
         from test_report
         where customer_id = $1 and execution_id = $2 and result in ('Passed', 'Failed', 'Error')
           and (change <> 'None' or test_case_id = any($3) or total_duration_in_sec >= $4)",
    );
    let candidates = sqlx::query_as(AssertSqlSafe(format!(
        "select case_id as id, identifier, called as name, is_raised,
                null::uuid as recovered_with_id, true as may_recover
         from ({candidates}) as candidate
         order by report"
    )));
    let is_timed = monitor.measure() == MonitorMeasure::Duration;
    let slow = is_timed.then_some(monitor.threshold);
    let candidates = candidates.bind(customer).bind(execution).bind(raised).bind(slow).bind(MOST);
    let mut candidates: Vec<Candidate> = candidates.fetch_all(&mut **tx).await?;
    for candidate in &mut candidates {
        candidate.recovered_with_id =
            alarms.get(&candidate.id).and_then(|alarm| alarm.recovered_with);
    }
    Ok(candidates)
}

/// A run of a test case.
#[derive(FromRow)]
pub(super) struct StoredRun {
    test_case_id: TestCaseId,
    execution_id: ExecutionId,
    commit: String,
    failed: bool,
    is_flaky: bool,
    total_duration_in_sec: f64,
}

impl StoredRun {
    fn observation(&self) -> Observation<'_> {
        let outcome = match (self.failed, self.is_flaky) {
            (true, _) => Outcome::Failed,
            (false, true) => Outcome::PassedOnRetry,
            (false, false) => Outcome::Passed,
        };
        let duration_in_sec = self.total_duration_in_sec;
        Observation { outcome, commit: &self.commit, duration_in_sec }
    }
}

/// The runs of test cases, of each the latest first.
#[derive(Default)]
pub(super) struct Runs(HashMap<TestCaseId, Vec<StoredRun>>);

impl Runs {
    /// Reads the runs of these test cases in executions, of which the latest comes first.
    pub(super) async fn read(
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        executions: &[Uuid],
        cases: &[TestCaseId],
    ) -> Result<Self, Fault> {
        let mut runs = Self::default();
        if cases.is_empty() {
            return Ok(runs);
        }
        let read = sqlx::query_as(
            "select r.test_case_id, r.execution_id, coalesce(e.commit, '') as commit,
                    r.result <> 'Passed' as failed, r.is_flaky, r.total_duration_in_sec
             from unnest($2::uuid[]) with ordinality as seen (id, nr)
             join execution e on e.customer_id = $1 and e.id = seen.id
             join test_report r on r.customer_id = $1 and r.execution_id = seen.id
                 and r.test_case_id = any($3)
             where r.result in ('Passed', 'Failed', 'Error')
             order by nr",
        );
        let read: Vec<StoredRun> = read
            .bind(customer)
            .bind(executions)
            .bind(cases)
            .persistent(false)
            .fetch_all(&mut **tx)
            .await?;
        for run in read {
            runs.0.entry(run.test_case_id).or_default().push(run);
        }
        Ok(runs)
    }

    /// Returns the runs of a test case since it has recovered last.
    pub(super) fn of(&self, candidate: &Candidate) -> Vec<Observation<'_>> {
        let counts = |run: &&StoredRun| {
            candidate.recovered_with_id.is_none_or(|before| run.execution_id.0 > before.0)
        };
        let runs = self.0.get(&candidate.id).into_iter().flatten();
        runs.take_while(counts).map(StoredRun::observation).collect()
    }
}
