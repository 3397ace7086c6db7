//! What engines may ask for.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::{Fault, execution::LeaseInput};
use assay_records::Check;

/// How many schedules one request may lease.
const MOST_SCHEDULES: i32 = 100;

/// How many seconds a request may wait.
const LONGEST_WAIT: i32 = 30;

/// What an engine asks for.
pub(crate) struct Wanted {
    pub(crate) target_group: String,
    pub(crate) engine: String,
    pub(crate) needs_public_ip: Option<bool>,
    pub(crate) max_schedules: i32,
    pub(crate) patience: Duration,
}

impl Wanted {
    pub(crate) fn read(caller: &Caller, input: LeaseInput) -> Result<Self, Fault> {
        let mut check = Check::default();
        check.texts(&input);
        if let Some(engine) = &input.engine {
            check.name("Engine", engine);
        }
        let max_schedules = input.max_schedules.unwrap_or(1);
        if !(1..=MOST_SCHEDULES).contains(&max_schedules) {
            check.refuse("MaxSchedules", format!("must be 1 to {MOST_SCHEDULES}"));
        }
        let wait = input.wait_in_sec.unwrap_or_default();
        if !(0..=LONGEST_WAIT).contains(&wait) {
            check.refuse("WaitInSec", format!("must be 0 to {LONGEST_WAIT}"));
        }
        check.done()?;
        Ok(Self {
            target_group: input.target_group.unwrap_or_default(),
            engine: input.engine.unwrap_or_else(|| caller.name.to_string()),
            needs_public_ip: input.needs_public_ip,
            max_schedules,
            patience: Duration::from_secs(wait.unsigned_abs().into()),
        })
    }
}

/// What somebody hears whose lease is not theirs any more.
pub(crate) fn lost() -> Fault {
    let reason = "the lease was lost: it was not renewed in time, and its work is somebody else's";
    Fault::Conflict { code: "lease_lost", reason: reason.to_owned() }
}
