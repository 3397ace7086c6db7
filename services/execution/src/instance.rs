//! Instances: single runs of a test, of which a report asks for one or many.

pub(crate) mod statistics;
pub(crate) mod steps;
pub(crate) mod store;

use assay_proto::{
    CustomerId, Fault, InstanceId, TestReportId, TestResult, Timestamp,
    execution::{Instance, Step, StepHistory},
};
use sqlx::PgPool;

use self::steps::StoredStep;

/// How an instance ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) instance_nr: i32,
    pub(crate) result: TestResult,
    pub(crate) start_date_time: Option<Timestamp>,
    pub(crate) finish_date_time: Option<Timestamp>,
    pub(crate) duration_in_sec: f64,
}

/// What else there is to an instance: for the eyes of those who look at it.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Detail {
    /// As [`steps::Writer`] writes them; empty for none.
    pub(crate) steps: Vec<u8>,
    pub(crate) artifacts_uri: String,
    pub(crate) report_uri: String,
    pub(crate) debug_log_uri: String,
    pub(crate) execution_log_uri: String,
    pub(crate) installation_log_uri: String,
}

/// An instance that is to be stored.
#[derive(Debug)]
pub(crate) struct NewInstance {
    pub(crate) id: InstanceId,
    /// The place of its report among those that are changed.
    pub(crate) report: usize,
    pub(crate) outcome: Outcome,
    pub(crate) detail: Detail,
}

/// An instance with its steps, and what became of them in earlier executions.
pub(crate) async fn details(
    db: &PgPool,
    customer: CustomerId,
    report: TestReportId,
    id: InstanceId,
) -> Result<Instance, Fault> {
    let (instance, steps) = store::get(db, customer, report, id).await?;
    let steps = steps::read::<StoredStep>(&steps)?;
    let history = if steps.is_empty() {
        Vec::new()
    } else {
        store::history(db, customer, report, instance.instance_nr).await?
    };
    let steps = steps.into_iter().map(|step| with_history(step, id, &history)).collect();
    Ok(Instance { steps, ..instance })
}

fn with_history(step: StoredStep, instance: InstanceId, history: &[StepHistory]) -> Step {
    let step = step.into_step(instance);
    let history = history.iter().filter(|earlier| earlier.step_nr == step.step_nr).copied();
    Step { history: history.collect(), ..step }
}
