//! Replays a monitor over ended executions, the earliest first, as if it had been created before them.
//!
//! Its alarms are kept in memory, and nothing is stored. A test case that somebody has muted or skipped by hand
//! is raised, too: these states are not known for the past.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use assay_database::begin;
use assay_fair::Shares;
use assay_judge::monitor::observe;
use assay_ledger::{change, execution};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, TestCaseId, Timestamp,
    execution::{Monitor, MonitorActionKind, MonitorBacktest, MonitorInput, ReplayedAction},
};
use assay_records::branch;
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::{AssertSqlSafe, FromRow, PgPool, PgTransaction};

use super::{
    act::taken_by,
    evaluation::{MOST_RAISED, Step, is_evidence_of_outage},
    rules,
    runs::{Alarm, Candidate, Runs, replayed_candidates},
    store::{DAYS_OF_STATE, facts},
};
use crate::period::Period;

/// Time after which no further executions are replayed. A call has 15 seconds.
const TIME: Duration = Duration::from_secs(8);

/// Number of executions that are read at a time.
const SLICE: usize = 100;

/// Maximum number of actions that are listed.
const LISTED: usize = 100;

/// A project over whose executions a monitor is replayed.
pub(crate) struct Replay<'r> {
    pub(crate) db: &'r PgPool,
    /// Shares of the database, one of which is taken for each execution.
    pub(crate) database: &'r Shares,
    pub(crate) customer: CustomerId,
    pub(crate) project: ProjectId,
}

#[derive(FromRow)]
struct Ended {
    id: ExecutionId,
    request_time: DateTime<Utc>,
}

/// The actions of the monitor so far, and its alarms.
#[derive(Default)]
struct Replayed {
    alarms: HashMap<TestCaseId, Alarm>,
    backtest: MonitorBacktest,
    /// The latest actions, in their order.
    actions: VecDeque<ReplayedAction>,
}

impl Replay<'_> {
    /// Replays the monitor over the executions of a period, as far as the time allows.
    pub(crate) async fn over(
        &self,
        input: MonitorInput,
        period: Period,
    ) -> Result<MonitorBacktest, Fault> {
        let monitor = created(rules::valid(input)?);
        let begun = Instant::now();
        let (mut first, last) = period.ids();
        let mut replayed = Replayed::default();
        loop {
            let slice = self.read(&monitor, period, (first, last)).await?;
            for ended in &slice {
                if begun.elapsed() > TIME {
                    replayed.backtest.left_from = Some(Timestamp(ended.request_time));
                    return Ok(replayed.done());
                }
                self.apply(&monitor, ended, &mut replayed).await?;
            }
            match slice.last() {
                Some(ended) if slice.len() == SLICE => {
                    first = uuid::Uuid::from_u128(ended.id.0.as_u128() + 1);
                }
                _ => return Ok(replayed.done()),
            }
        }
    }

    /// Reads ended executions that the monitor measures, the earliest first.
    async fn read(
        &self,
        monitor: &Monitor,
        period: Period,
        (first, last): (uuid::Uuid, uuid::Uuid),
    ) -> Result<Vec<Ended>, Fault> {
        let _share = self.database.acquire(self.customer).await?;
        let of_branch = branch::condition("branch", "$7");
        let part = |archived: &str| {
            format!(
                "(select id, request_time from execution e
                  where customer_id = $1 and project_id = $2 and id >= $3 and id < $4 and {archived}
                    and status in ('Completed', 'Canceled')
                    and not is_merged
                    and request_time >= coalesce($5, '-infinity')
                    and request_time < coalesce($6, 'infinity')
                    and case when $7 = '' then is_of_default_branch else {of_branch} end
                    and exists (select from live_execution l where l.customer_id = $1 and l.id = e.id)
                  order by id
                  limit $8)"
            )
        };
        // Archived executions have an index of their own. Both have rows in this order.
        let (kept, archived) = (part("not archived"), part("archived"));
        let ended = sqlx::query_as(AssertSqlSafe(format!(
            "select id, request_time from ({kept} union all {archived}) as ended
             order by id
             limit $8"
        )));
        let ended = ended.bind(self.customer).bind(self.project).bind(first).bind(last);
        let ended = ended.bind(period.from).bind(period.until).bind(&monitor.branch);
        let limit = i64::try_from(SLICE).map_err(Fault::internal)?;
        Ok(ended.bind(limit).fetch_all(self.db).await?)
    }

    async fn apply(
        &self,
        monitor: &Monitor,
        ended: &Ended,
        replayed: &mut Replayed,
    ) -> Result<(), Fault> {
        let _share = self.database.acquire(self.customer).await?;
        let mut tx = begin(self.db).await?;
        replayed.backtest.executions += 1;
        replayed.apply(&mut tx, self.customer, monitor, ended).await?;
        Ok(tx.rollback().await?)
    }
}

impl Replayed {
    /// Applies the monitor to the test cases of an execution.
    async fn apply(
        &mut self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        monitor: &Monitor,
        ended: &Ended,
    ) -> Result<(), Fault> {
        let at = (ended.id, ended.request_time);
        let mut candidates = replayed_candidates(tx, customer, at, monitor, &self.alarms).await?;
        if candidates.is_empty() {
            return Ok(());
        }
        let state = execution::store::find(&mut **tx, customer, None, ended.id).await?;
        let muted = facts(tx, customer, ended.id).await?.muted;
        if state.is_past() || is_evidence_of_outage(&state, muted) {
            return Ok(());
        }
        let series = (state.execution.test_set_id.clone(), state.execution.environment_id.clone());
        for candidate in &mut candidates {
            let alarm = self.alarms.get(&candidate.id);
            candidate.may_recover = alarm.is_none_or(|alarm| alarm.raised_in == series);
        }
        let rule = change::rule_of(tx, customer, ended.id).await?;
        let mut executions = change::series(tx, customer, &state).await?;
        executions.insert(0, ended.id.0);
        let cases: Vec<_> = candidates.iter().map(|candidate| candidate.id).collect();
        let runs = Runs::read(tx, customer, &executions, &cases).await?;
        let thresholds = rules::thresholds(monitor);
        let mut raised = 0;
        for candidate in &candidates {
            let finding = observe(&thresholds, &runs.of(candidate), rule);
            match Step::of(finding, candidate) {
                Some(Step::Raise(reason)) if raised < MOST_RAISED => {
                    raised += 1;
                    self.raise(monitor, (ended, &series), candidate, reason);
                }
                Some(Step::End(kind, reason)) => self.end(ended, candidate, kind, reason),
                Some(Step::Raise(_)) | None => {}
            }
        }
        Ok(())
    }

    fn raise(
        &mut self,
        monitor: &Monitor,
        (ended, series): (&Ended, &(String, Option<String>)),
        candidate: &Candidate,
        reason: String,
    ) {
        let until = ended.request_time + TimeDelta::days(i64::from(DAYS_OF_STATE));
        let recovered_with = self.alarms.get(&candidate.id).and_then(|alarm| alarm.recovered_with);
        let alarm = Alarm { raised_until: Some(until), raised_in: series.clone(), recovered_with };
        self.alarms.insert(candidate.id, alarm);
        self.backtest.raised += 1;
        self.list(ended, candidate, taken_by(monitor.action()).0, reason);
    }

    fn end(
        &mut self,
        ended: &Ended,
        candidate: &Candidate,
        kind: MonitorActionKind,
        reason: String,
    ) {
        let has_recovered = kind == MonitorActionKind::Recovered;
        if let Some(alarm) = self.alarms.get_mut(&candidate.id) {
            alarm.raised_until = None;
            alarm.recovered_with = has_recovered.then_some(ended.id).or(alarm.recovered_with);
        }
        self.backtest.recovered += i32::from(has_recovered);
        self.backtest.broken += i32::from(!has_recovered);
        self.list(ended, candidate, kind, reason);
    }

    fn list(
        &mut self,
        ended: &Ended,
        candidate: &Candidate,
        action: MonitorActionKind,
        reason: String,
    ) {
        if self.actions.len() == LISTED {
            self.actions.pop_front();
        }
        let called = candidate.called();
        self.actions.push_back(ReplayedAction {
            execution_id: ended.id.to_string(),
            request_time: Some(Timestamp(ended.request_time)),
            test_case_id: candidate.id.to_string(),
            test_case_identifier: called.identifier,
            test_case_name: called.name,
            action: action.into(),
            reason,
        });
    }

    fn done(mut self) -> MonitorBacktest {
        self.backtest.actions = self.actions.into_iter().rev().collect();
        self.backtest
    }
}

/// Returns the monitor that an input creates.
fn created(input: MonitorInput) -> Monitor {
    Monitor {
        measure: input.measure,
        runs: input.runs.unwrap_or_default(),
        threshold: input.threshold,
        branch: input.branch.unwrap_or_default(),
        action: input.action,
        recover_after: input.recover_after.unwrap_or_default(),
        ..Monitor::default()
    }
}
