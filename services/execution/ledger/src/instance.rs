//! Instances: the single runs of a test case within its report.

pub mod attempts;
pub mod gaps;
pub mod statistics;
pub mod steps;
pub mod store;

use std::collections::HashMap;

use assay_proto::{
    CustomerId, Fault, InstanceId, TestReportId,
    execution::{Instance, InstanceAttempt, InstanceEntry, Step, StepHistory},
};
use assay_rpc::list::Slice;
use sqlx::PgPool;

use self::steps::StoredStep;

/// Reads an instance with its steps and the results of the same steps in earlier executions.
pub async fn details(
    db: &PgPool,
    customer: CustomerId,
    report: TestReportId,
    id: InstanceId,
) -> Result<Instance, Fault> {
    let (instance, steps) = match store::get(db, customer, report, id).await {
        Err(Fault::NotFound(noun)) => {
            let missing = gaps::of(db, customer, report).await?.instance(id);
            return missing.ok_or(Fault::NotFound(noun));
        }
        found => found?,
    };
    let steps = steps::read::<StoredStep>(&steps)?;
    let history = if steps.is_empty() {
        Vec::new()
    } else {
        store::history(db, customer, report, instance.instance_nr).await?
    };
    let history = by_step(history);
    let steps = steps.into_iter().map(|step| with_history(step, id, &history)).collect();
    let attempts = earlier_attempts(db, customer, report, &instance, id).await?;
    Ok(Instance { steps, attempts, ..instance })
}

/// Reads the attempts of an instance before the last one, with the steps of the latest.
async fn earlier_attempts(
    db: &PgPool,
    customer: CustomerId,
    report: TestReportId,
    instance: &Instance,
    id: InstanceId,
) -> Result<Vec<InstanceAttempt>, Fault> {
    if instance.attempt == 1 {
        return Ok(Vec::new());
    }
    let numbers = (instance.instance_nr, instance.attempt);
    let earlier = attempts::earlier(db, customer, report, numbers).await?;
    let mut room = steps::EARLIER;
    let with_steps = |(attempt, stored): (InstanceAttempt, Option<Vec<u8>>)| {
        let steps = steps::read_within(stored.as_deref(), attempt.result, &mut room)?;
        let steps = steps.into_iter().map(|step| step.into_step(id)).collect();
        Ok(InstanceAttempt { steps, ..attempt })
    };
    let latest_first: Result<Vec<_>, Fault> = earlier.into_iter().rev().map(with_steps).collect();
    let mut attempts = latest_first?;
    attempts.reverse();
    Ok(attempts)
}

/// Lists instances of a report, by number, after the cursor of `slice`. Missing instances are
/// listed once the report has ended.
pub async fn list(
    db: &PgPool,
    customer: CustomerId,
    report: TestReportId,
    slice: &Slice,
) -> Result<Vec<InstanceEntry>, Fault> {
    let gaps = gaps::of(db, customer, report).await?;
    let after = match InstanceId::from_field_if_any("cursor", slice.after.as_deref())? {
        None => 0,
        Some(id) => match gaps.number(id) {
            Some(number) => number,
            None => store::number(db, customer, report, id).await?.unwrap_or_default(),
        },
    };
    let Some(result) = gaps.result() else {
        return store::list(db, customer, report, after..=i32::MAX, slice.limit).await;
    };
    let limit = i32::try_from(slice.limit).unwrap_or(i32::MAX);
    let last = after.saturating_add(limit).min(gaps.requested);
    let stored = store::list(db, customer, report, after..=last, slice.limit).await?;
    let mut stored = stored.into_iter().peekable();
    let entry = |nr| {
        let stored = stored.next_if(|entry| entry.instance_nr == nr);
        stored.unwrap_or_else(|| gaps.entry(nr, result))
    };
    Ok((after + 1..=last).map(entry).collect())
}

/// Fails unless the report has the instance, reported or missing.
pub async fn check_exists(
    db: &PgPool,
    customer: CustomerId,
    report: TestReportId,
    id: InstanceId,
) -> Result<(), Fault> {
    match store::check_exists(db, customer, report, id).await {
        Err(Fault::NotFound(noun)) => {
            let missing = gaps::of(db, customer, report).await?.instance(id);
            missing.map(drop).ok_or(Fault::NotFound(noun))
        }
        checked => checked,
    }
}

/// Returns earlier steps by their numbers, of which there may be thousands.
fn by_step(history: Vec<StepHistory>) -> HashMap<i32, Vec<StepHistory>> {
    let mut steps = HashMap::<_, Vec<_>>::new();
    for earlier in history {
        steps.entry(earlier.step_nr).or_default().push(earlier);
    }
    steps
}

fn with_history(
    step: StoredStep,
    instance: InstanceId,
    history: &HashMap<i32, Vec<StepHistory>>,
) -> Step {
    let step = step.into_step(instance);
    let history = history.get(&step.step_nr).cloned().unwrap_or_default();
    Step { history, ..step }
}
