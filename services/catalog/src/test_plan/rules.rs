//! What makes a test plan, and what may change of it once it was executed.

use assay_proto::{Fault, PlanStatus, TestType, catalog::TestPlanInput};
use assay_records::Check;

use crate::secrets;

/// Why a plan that was executed does not take a change.
const FROZEN: &str = "the test plan was executed and takes no change but of its Status, Description \
                      and MonitoringMessage; add a new plan instead";

/// How many instances a run may have.
const MOST_INSTANCES: i32 = 10_000;

/// A new plan, with what was not said.
pub(super) fn new(input: TestPlanInput) -> TestPlanInput {
    TestPlanInput {
        instances: input.instances.or(Some(1)),
        minimum_duration_in_min: input.minimum_duration_in_min.or(Some(0.0)),
        test_type: input.test_type.or(Some(TestType::Default.into())),
        status: Some(PlanStatus::New.into()),
        ..input
    }
}

pub(super) fn valid(input: TestPlanInput) -> Result<TestPlanInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    secrets::check(&mut check, &input.variables);
    match input.instances {
        Some(1..=MOST_INSTANCES) => {}
        _ => check.refuse("Instances", format!("must be a number from 1 to {MOST_INSTANCES}")),
    }
    check.amount("MinimumDurationInMin", input.minimum_duration_in_min.unwrap_or(f64::NAN));
    if input.test_type.is_none() {
        check.refuse("TestType", "must be Default, Performance or Stability");
    }
    if input.status.is_none() {
        check.refuse("Status", "must be New or ReadyForExecution");
    }
    check.done().map(|()| input)
}

/// An executed plan is history: what was executed must not change. Values that are sent back
/// unchanged are none of a change.
pub(super) fn only_what_a_frozen_plan_takes(
    changed: &TestPlanInput,
    current: TestPlanInput,
) -> Result<(), Fault> {
    let allowed = TestPlanInput {
        status: changed.status,
        description: changed.description.clone(),
        monitoring_message: changed.monitoring_message.clone(),
        ..current
    };
    if allowed == *changed {
        return Ok(());
    }
    Err(Fault::Conflict { code: "test_plan_frozen", reason: FROZEN.to_owned() })
}
