//! The rules for test plans and their automation steps. An executed plan is frozen.

use std::collections::HashSet;

use assay_proto::{
    Fault, PlanStatus, TestType,
    catalog::{AutomationStep, AutomationStepInput, TestPlanInput},
    value_of,
};
use assay_records::Check;

use crate::secrets;

const FROZEN: &str = "the test plan was executed; only its Status, Description and \
                      MonitoringMessage can be changed; add a new plan instead";

/// Maximum number of instances of a run.
const MOST_INSTANCES: i32 = 10_000;

/// Longest minimum and maximum duration of an instance, in minutes.
const LONGEST: f64 = 6_000_000.0;

/// Maximum number of automation steps of a plan.
const MOST_STEPS: usize = 10_000;

/// Returns a new plan with its defaults.
pub(crate) fn new(input: TestPlanInput) -> TestPlanInput {
    TestPlanInput {
        instances: input.instances.or(Some(1)),
        minimum_duration_in_min: input.minimum_duration_in_min.or(Some(0.0)),
        maximum_duration_in_min: input.maximum_duration_in_min.or(Some(0.0)),
        test_type: input.test_type.or(Some(TestType::Default.into())),
        status: Some(PlanStatus::New.into()),
        ..input
    }
}

pub(crate) fn valid(mut input: TestPlanInput) -> Result<TestPlanInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    secrets::check(&mut check, &input.variables);
    match input.instances {
        Some(1..=MOST_INSTANCES) => {}
        _ => check.refuse("Instances", format!("must be a number from 1 to {MOST_INSTANCES}")),
    }
    let minimum = input.minimum_duration_in_min.unwrap_or(f64::NAN);
    check.range("MinimumDurationInMin", minimum, 0.0..=LONGEST);
    // Absent if a client clears it, which restores the default.
    let maximum = *input.maximum_duration_in_min.get_or_insert(0.0);
    if maximum > 0.0 && maximum < minimum {
        check.refuse("MaximumDurationInMin", "must not be less than MinimumDurationInMin");
    } else {
        check.range("MaximumDurationInMin", maximum, 0.0..=LONGEST);
    }
    if input.test_type.is_none() {
        check.refuse("TestType", "must be Default, Performance or Stability");
    }
    if input.status.is_none() {
        check.refuse("Status", "must be New or ReadyForExecution");
    }
    check.done().map(|()| input)
}

/// Fails if a change of a frozen plan is more than its status and its texts. Values that are sent back
/// unchanged are allowed.
pub(super) fn allowed_in_frozen_plan(
    changed: &TestPlanInput,
    current: TestPlanInput,
) -> Result<(), Fault> {
    let allowed = TestPlanInput {
        status: changed.status,
        description: changed.description.clone(),
        monitoring_message: changed.monitoring_message.clone(),
        ..current
    };
    if allowed == *changed { Ok(()) } else { Err(frozen()) }
}

pub(super) fn frozen() -> Fault {
    Fault::Conflict { code: "test_plan_frozen", reason: FROZEN.to_owned() }
}

/// Returns a copy of a plan with another type.
pub(super) fn transferred(plan: TestPlanInput, new_type: &str) -> Result<TestPlanInput, Fault> {
    let test_type = value_of::<TestType>(new_type)
        .ok_or_else(|| Fault::invalid("newType", "must be Default, Performance or Stability"))?;
    Ok(new(TestPlanInput { test_type: Some(test_type.into()), ..plan }))
}

/// Checks automation steps and returns them in the order of their numbers.
pub(crate) fn steps(inputs: Vec<AutomationStepInput>) -> Result<Vec<AutomationStep>, Fault> {
    let mut check = Check::default();
    if inputs.len() > MOST_STEPS {
        return Err(Fault::invalid("", format!("must have at most {MOST_STEPS} steps")));
    }
    check.texts(&inputs);
    let mut numbers = HashSet::new();
    let mut steps = Vec::with_capacity(inputs.len());
    for (index, input) in (0..).zip(inputs) {
        let step_nr = input.step_nr.unwrap_or(index + 1);
        if step_nr < 1 {
            check.refuse(format!("{index}/StepNr"), "must be a number from 1");
        } else if !numbers.insert(step_nr) {
            check.refuse(format!("{index}/StepNr"), "must be unique");
        }
        let AutomationStepInput { test_input, expected_result, comment, .. } = input;
        steps.push(AutomationStep { step_nr, test_input, expected_result, comment });
    }
    steps.sort_by_key(|step| step.step_nr);
    check.done().map(|()| steps)
}

/// Returns the first `count` steps whose comment contains a text.
pub(super) fn selected(
    steps: Vec<AutomationStep>,
    comment: Option<&str>,
    count: Option<i32>,
) -> Result<Vec<AutomationStep>, Fault> {
    let most = count.map_or(Ok(usize::MAX), usize::try_from);
    let most = most.map_err(|_| Fault::invalid("count", "must be a number from 0"))?;
    let text = comment.unwrap_or_default().to_lowercase();
    let contains = |step: &AutomationStep| step.comment.to_lowercase().contains(&text);
    Ok(steps.into_iter().filter(contains).take(most).collect())
}
