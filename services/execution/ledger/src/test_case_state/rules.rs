//! Rules for the states of test cases.

use assay_proto::{
    Fault, Timestamp,
    execution::{CaseState, TestCaseState, TestCaseStateInput},
};
use assay_records::Check;
use chrono::{SecondsFormat, TimeDelta};

/// Maximum time that a test case is muted or skipped, in days.
pub const LONGEST: i32 = 90;

/// Maximum number of test cases of a project that are muted or skipped.
pub const MOST: i64 = 10_000;

/// Maximum lengths, in characters.
const LONGEST_LINE: usize = 255;
const LONGEST_REASON: usize = 1000;

/// A state to store.
#[derive(Clone, Debug)]
pub struct NewState {
    pub state: CaseState,
    pub until: Timestamp,
    pub ticket: String,
    pub reason: String,
    pub owner: String,
}

/// Returns the state of a test case that is enabled.
pub fn enabled(test_case_id: String) -> TestCaseState {
    TestCaseState {
        test_case_id,
        state: CaseState::Enabled.into(),
        data_version: "0".to_owned(),
        ..TestCaseState::default()
    }
}

/// Checks a change of the state of a test case. Returns nothing if the test case is enabled with it.
/// States may last until the latest end.
pub fn check_change(
    current: &TestCaseState,
    input: TestCaseStateInput,
    latest: Timestamp,
    caller: &str,
) -> Result<Option<NewState>, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    if input.state() == CaseState::Enabled {
        return check.done().map(|()| None);
    }
    let line = |text: Option<String>| text.unwrap_or_default();
    let (ticket, reason, owner) = (line(input.ticket), line(input.reason), line(input.owner));
    check.line("Ticket", &ticket, 0..=LONGEST_LINE);
    check.line("Owner", &owner, 0..=LONGEST_LINE);
    check.length("Reason", &reason, LONGEST_REASON);
    let until = match input.until {
        None => {
            check.refuse("Until", "must be given unless the state is Enabled");
            Timestamp::default()
        }
        // It was checked when it was set.
        Some(until) if current.until == Some(until) => until,
        Some(until) => check_end(until, latest, &mut check),
    };
    check.done()?;
    let owner = if owner.is_empty() { caller.to_owned() } else { owner };
    let state = CaseState::try_from(input.state).unwrap_or_default();
    Ok(Some(NewState { state, until, ticket, reason, owner }))
}

fn check_end(until: Timestamp, latest: Timestamp, check: &mut Check) -> Timestamp {
    if until.0 <= latest.0 - TimeDelta::days(LONGEST.into()) {
        check.refuse("Until", "must be in the future: set the state to Enabled to end it");
    } else if until > latest {
        check.refuse("Until", format!("must be within {LONGEST} days"));
    }
    until
}

/// Returns the comment of the report of a skipped test case.
pub(super) fn comment(until: Timestamp, ticket: &str, reason: &str) -> String {
    let until = until.0.to_rfc3339_opts(SecondsFormat::Secs, true);
    let because = |text: &str| if text.is_empty() { String::new() } else { format!(", {text}") };
    format!("Skipped until {until}{}{}", because(ticket), because(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: i64) -> Timestamp {
        Timestamp(chrono::DateTime::UNIX_EPOCH + TimeDelta::days(day))
    }

    fn input(state: CaseState, until: Option<Timestamp>) -> TestCaseStateInput {
        TestCaseStateInput { state: state.into(), until, ..TestCaseStateInput::default() }
    }

    fn refused(current: &TestCaseState, input: TestCaseStateInput) -> Vec<String> {
        match check_change(current, input, at(100), "Ada") {
            Err(Fault::Invalid(violations)) => {
                violations.into_iter().map(|violation| violation.field).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn a_state_ends_in_the_future_and_within_90_days() {
        let before = enabled(String::new());
        for (until, expected) in [
            (None, &["Until"][..]),
            (Some(at(10)), &["Until"]),
            (Some(at(11)), &[]),
            (Some(at(100)), &[]),
            (Some(at(101)), &["Until"]),
        ] {
            assert_eq!(refused(&before, input(CaseState::Muted, until)), expected, "{until:?}");
        }
        assert!(refused(&before, input(CaseState::Enabled, None)).is_empty());
    }

    #[test]
    fn the_user_owns_a_state_unless_it_names_another_owner() {
        let before = enabled(String::new());
        let owner = |owner: Option<&str>| {
            let owner = owner.map(str::to_owned);
            let input = TestCaseStateInput { owner, ..input(CaseState::Skipped, Some(at(50))) };
            check_change(&before, input, at(100), "Ada").unwrap().unwrap().owner
        };
        assert_eq!((owner(None), owner(Some("Checkout"))), ("Ada".into(), "Checkout".into()));
    }

    #[test]
    fn the_comment_of_a_skipped_test_case_says_until_when_and_why() {
        assert_eq!(comment(at(0), "SHOP-1", ""), "Skipped until 1970-01-01T00:00:00Z, SHOP-1");
        assert_eq!(comment(at(1), "", "slow"), "Skipped until 1970-01-02T00:00:00Z, slow");
    }
}
