//! Rules for what engines ask for.

use std::{iter, time::Duration};

use assay_auth::Caller;
use assay_ledger::time_limits::TimeLimits;
use assay_proto::{
    Fault,
    execution::{LeaseInput, RenewLeaseInput},
};
use assay_records::Check;

use crate::restriction;

/// Maximum number of schedules that one request leases.
const MOST_SCHEDULES: i32 = 100;

/// Maximum length of the version of an engine, in characters.
const LONGEST_VERSION: usize = 255;

/// Maximum time that a request waits for schedules, in seconds.
const LONGEST_WAIT: i32 = 30;

/// Returns the labels that an engine offers. The empty one stands for work that needs none.
pub(crate) fn offered(input: &LeaseInput) -> Vec<String> {
    let group = input.target_group().to_owned();
    iter::once(group).chain(input.labels.iter().cloned()).collect()
}

/// Returns the time for which a heartbeat waits. The lease is not lost meanwhile.
pub(crate) fn wait_for_stop(
    input: RenewLeaseInput,
    settings: TimeLimits,
) -> Result<Duration, Fault> {
    let wait = input.wait_in_sec();
    let mut check = Check::default();
    if !(0..=LONGEST_WAIT).contains(&wait) {
        check.refuse("WaitInSec", format!("must be 0 to {LONGEST_WAIT}"));
    }
    check.done()?;
    Ok(Duration::from_secs(wait.unsigned_abs().into()).min(settings.lease() / 3))
}

/// Checks the input of a request for leases. Returns it with a value for every field that has a
/// default.
pub(crate) fn with_defaults(caller: &Caller, input: LeaseInput) -> Result<LeaseInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    if let Some(engine) = &input.engine {
        check.name("Engine", engine);
    }
    check.labels("Labels", &input.labels);
    if input.version().chars().count() > LONGEST_VERSION {
        check.refuse("Version", format!("must have at most {LONGEST_VERSION} characters"));
    }
    let max_schedules = input.max_schedules.unwrap_or(1);
    if !(1..=MOST_SCHEDULES).contains(&max_schedules) {
        check.refuse("MaxSchedules", format!("must be 1 to {MOST_SCHEDULES}"));
    }
    if !(0..=LONGEST_WAIT).contains(&input.wait_in_sec()) {
        check.refuse("WaitInSec", format!("must be 0 to {LONGEST_WAIT}"));
    }
    let projects = restriction::check(&mut check, "ProjectIds", &input.project_ids);
    check.done()?;
    let engine = input.engine.unwrap_or_else(|| caller.name.to_string());
    let project_ids = projects.iter().map(ToString::to_string).collect();
    let max_schedules = Some(max_schedules);
    Ok(LeaseInput { engine: Some(engine), max_schedules, project_ids, ..input })
}
