//! Rules for known failures.

use assay_fingerprint::Fingerprint;
use assay_proto::{
    Fault, TestCaseId, Timestamp,
    execution::{CreateKnownFailureInput, KnownFailure, KnownFailureInput},
};
use assay_records::Check;
use chrono::TimeDelta;

/// Maximum time that a failure is muted, in days.
pub const LONGEST: i32 = 90;

/// Maximum number of known failures of a project.
pub const MOST: i64 = 10_000;

/// Maximum length of a ticket, in characters.
const LONGEST_TICKET: usize = 255;

/// Default and maximum number of days in which matches are sought.
const DAYS: i32 = 30;
const MOST_DAYS: i32 = 90;

/// A known failure to store.
#[derive(Clone, Debug)]
pub struct NewKnownFailure {
    pub fingerprint: Fingerprint,
    /// Nothing for every test case.
    pub test_case: Option<TestCaseId>,
    pub ticket: String,
    pub comment: String,
    pub muted_until: Timestamp,
}

pub fn check_new(
    input: CreateKnownFailureInput,
    latest: Timestamp,
) -> Result<NewKnownFailure, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    let fingerprint = input.fingerprint.parse::<Fingerprint>();
    if fingerprint.is_err() {
        check.refuse("Fingerprint", "must be the fingerprint of a failure");
    }
    let test_case = TestCaseId::from_field_if_any("TestCaseId", input.test_case_id.as_deref());
    let test_case = check.read(test_case)?.flatten();
    if check.is_ok() && input.every_case == test_case.is_some() {
        check.refuse("TestCaseId", "must be given, or EveryCase must be true, and not both");
    }
    check_ticket(input.ticket.as_deref(), &mut check);
    let muted_until = check_end(input.muted_until, latest, &mut check);
    check.done()?;
    Ok(NewKnownFailure {
        fingerprint: fingerprint.map_err(Fault::internal)?,
        test_case,
        ticket: input.ticket.unwrap_or_default(),
        comment: input.comment.unwrap_or_default(),
        muted_until,
    })
}

pub fn check_change(
    current: &KnownFailure,
    input: &KnownFailureInput,
    latest: Timestamp,
) -> Result<(), Fault> {
    let mut check = Check::default();
    check.texts(input);
    check_ticket(input.ticket.as_deref(), &mut check);
    if input.muted_until != Some(current.muted_until.unwrap_or_default()) {
        check_latest(input.muted_until, latest, &mut check);
    }
    check.done()
}

pub fn check_ticket(ticket: Option<&str>, check: &mut Check) {
    check.line("Ticket", ticket.unwrap_or_default(), 0..=LONGEST_TICKET);
}

/// Checks the end of a new known failure, which is in the future and not after the latest one.
pub fn check_end(until: Option<Timestamp>, latest: Timestamp, check: &mut Check) -> Timestamp {
    let now = latest.0 - TimeDelta::days(LONGEST.into());
    if until.is_some_and(|until| until.0 <= now) {
        check.refuse("MutedUntil", "must be in the future");
    }
    check_latest(until, latest, check)
}

/// Checks the end of a known failure that exists. A time in the past ends it.
fn check_latest(until: Option<Timestamp>, latest: Timestamp, check: &mut Check) -> Timestamp {
    match until {
        None => check.refuse("MutedUntil", "must be given"),
        Some(until) if until > latest => {
            check.refuse("MutedUntil", format!("must be within {LONGEST} days"));
        }
        Some(_) => {}
    }
    until.unwrap_or_default()
}

pub fn check_days(days: Option<i32>) -> Result<i32, Fault> {
    let days = days.unwrap_or(DAYS);
    let mut check = Check::default();
    check.range("days", days, 1..=MOST_DAYS);
    check.done().map(|()| days)
}
