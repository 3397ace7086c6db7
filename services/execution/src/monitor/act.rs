//! The actions of monitors on test cases: they mute or skip them, or publish a notification, and lift only what
//! they have set.

use assay_events::{AlarmChange, publish};
use assay_ledger::{
    event,
    test_case_state::{
        lift,
        rules::{MOST, NewState},
        set,
        store::{self, Author},
    },
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, MonitorId, ProjectId, Timestamp,
    execution::{AlarmAction, CaseState, Monitor, MonitorActionKind},
};
use sqlx::PgTransaction;

use super::{
    alarm::{self, Taken},
    runs::Candidate,
};

/// An execution that has ended.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    pub(super) customer: CustomerId,
    pub(super) project: ProjectId,
    pub(super) id: ExecutionId,
    /// The time at which a state ends that is set now.
    pub(super) until: Timestamp,
}

/// Acts on a test case that has reached the threshold, unless somebody else has muted or skipped it. Returns
/// whether it did.
pub(super) async fn raise(
    tx: &mut PgTransaction<'_>,
    ended: &Ended,
    (id, monitor): (MonitorId, &Monitor),
    candidate: &Candidate,
    reason: &str,
    states: &mut States,
) -> Result<bool, Fault> {
    let (kind, state) = taken_by(monitor.action());
    let until = ended.until;
    if let Some(state) = state.filter(|_| !monitor.dry_run) {
        let state = NewState {
            state,
            until,
            ticket: String::new(),
            reason: reason.to_owned(),
            owner: format!("monitor {}", monitor.name),
        };
        if !set_state(tx, ended, (id, monitor), candidate, &state, states).await? {
            return Ok(false);
        }
    } else if !monitor.dry_run {
        publish(
            tx,
            &event::alarm(ended.customer, ended.project, id, candidate.id, AlarmChange::Raised)?,
        )
        .await?;
    }
    alarm::raise(tx, ended.customer, id, candidate.id, (ended.id, until)).await?;
    record(tx, ended, (id, monitor), candidate, (kind, reason)).await?;
    Ok(true)
}

/// Returns the kind of an action, and the state that it sets.
pub(super) fn taken_by(action: AlarmAction) -> (MonitorActionKind, Option<CaseState>) {
    match action {
        AlarmAction::Mute => (MonitorActionKind::Muted, Some(CaseState::Muted)),
        AlarmAction::Skip => (MonitorActionKind::Skipped, Some(CaseState::Skipped)),
        AlarmAction::Notify | AlarmAction::Unspecified => (MonitorActionKind::Notified, None),
    }
}

/// The number of test cases of a project that are muted or skipped, once it was needed.
#[derive(Default)]
pub(super) struct States(Option<i64>);

impl States {
    async fn count(&mut self, tx: &mut PgTransaction<'_>, ended: &Ended) -> Result<i64, Fault> {
        match self.0 {
            Some(count) => Ok(count),
            None => Ok(*self.0.insert(store::count(tx, ended.customer, ended.project).await?)),
        }
    }
}

/// Sets a state, unless the test case has one already or too many have.
async fn set_state(
    tx: &mut PgTransaction<'_>,
    ended: &Ended,
    (id, monitor): (MonitorId, &Monitor),
    candidate: &Candidate,
    state: &NewState,
    states: &mut States,
) -> Result<bool, Fault> {
    let Ended { customer, project, .. } = *ended;
    let is_enabled = store::lock(tx, customer, project, candidate.id).await?.is_none();
    if !is_enabled || states.count(tx, ended).await? >= MOST {
        return Ok(false);
    }
    states.0 = states.0.map(|count| count + 1);
    let author = Author::Monitor(id, &monitor.name);
    set(tx, customer, project, (candidate.id, &candidate.called()), state, author).await?;
    Ok(true)
}

/// Ends the alarm of a test case that has recovered or is broken, and lifts the state that the monitor has set.
pub(super) async fn end(
    tx: &mut PgTransaction<'_>,
    ended: &Ended,
    (id, monitor): (MonitorId, &Monitor),
    candidate: &Candidate,
    (kind, reason): (MonitorActionKind, &str),
) -> Result<(), Fault> {
    let Ended { customer, project, .. } = *ended;
    let has_recovered = kind == MonitorActionKind::Recovered;
    // It may have set the state before it was changed to do something else.
    lift(tx, customer, project, candidate.id, id).await?;
    if has_recovered && !monitor.dry_run && monitor.action() == AlarmAction::Notify {
        let recovered = event::alarm(customer, project, id, candidate.id, AlarmChange::Recovered)?;
        publish(tx, &recovered).await?;
    }
    let recovered_with = has_recovered.then_some(ended.id);
    alarm::end(tx, customer, id, candidate.id, recovered_with).await?;
    record(tx, ended, (id, monitor), candidate, (kind, reason)).await
}

async fn record(
    tx: &mut PgTransaction<'_>,
    ended: &Ended,
    (id, monitor): (MonitorId, &Monitor),
    candidate: &Candidate,
    (action, reason): (MonitorActionKind, &str),
) -> Result<(), Fault> {
    let taken = Taken {
        monitor: id,
        execution: ended.id,
        case: candidate.id,
        called: &candidate.called(),
        action,
        reason,
        is_dry: monitor.dry_run,
    };
    alarm::record(tx, ended.customer, &taken).await
}
