//! Rules for the fields of a notification.

use assay_proto::{Fault, notification::NotificationInput};
use assay_records::Check;

/// State of a notification about something that has no state.
pub(crate) const NO_STATE: &str = "None";

/// Maximum length of a kind, an action or a state, in characters.
const MAX_NAME: usize = 128;

/// Maximum length of an id, in characters. Ids of other systems need not be UUIDs.
const MAX_ID: usize = 255;

/// Checks the input of a client and fills in its state.
pub(crate) fn validate(input: NotificationInput) -> Result<NotificationInput, Fault> {
    let state = input.state.filter(|state| !state.is_empty());
    let state = state.unwrap_or_else(|| NO_STATE.to_owned());
    let mut check = Check::default();
    check.line("Source", &input.source, 1..=MAX_NAME);
    check.line("SourceId", &input.source_id, 0..=MAX_ID);
    check.line("Target", &input.target, 1..=MAX_NAME);
    check.line("TargetId", input.target_id.as_deref().unwrap_or_default(), 0..=MAX_ID);
    check.line("Action", &input.action, 1..=MAX_NAME);
    check.line("State", &state, 1..=MAX_NAME);
    check.done()?;
    Ok(NotificationInput { state: Some(state), ..input })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> NotificationInput {
        NotificationInput {
            source: "TestCase".to_owned(),
            source_id: "TC-1".to_owned(),
            target: "TestReport".to_owned(),
            target_id: None,
            action: "Created".to_owned(),
            state: None,
        }
    }

    #[test]
    fn a_missing_or_empty_state_becomes_none() {
        assert_eq!(validate(input()).unwrap().state.as_deref(), Some("None"));
        let empty = NotificationInput { state: Some(String::new()), ..input() };
        assert_eq!(validate(empty).unwrap().state.as_deref(), Some("None"));
        let submitted = NotificationInput { state: Some("Submitted".to_owned()), ..input() };
        assert_eq!(validate(submitted).unwrap().state.as_deref(), Some("Submitted"));
    }

    #[test]
    fn names_are_one_line_of_1_to_128_characters() {
        let longest = "ä".repeat(128);
        for good in ["A", "TestCase2", "test case", "a.b", "a>", "*", &longest] {
            let named = NotificationInput { action: good.to_owned(), ..input() };
            assert!(validate(named).is_ok(), "{good:?} was rejected");
        }
        let long = "x".repeat(129);
        for wrong in ["", "a\0", "a\nb", "\u{85}", &long] {
            let named = NotificationInput { action: wrong.to_owned(), ..input() };
            assert!(validate(named).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn ids_are_one_line_of_up_to_255_characters() {
        let longest = "ä".repeat(255);
        for good in ["", "a/b c", &longest] {
            let identified = NotificationInput { source_id: good.to_owned(), ..input() };
            assert!(validate(identified).is_ok(), "{good:?} was rejected");
        }
        let long = "x".repeat(256);
        for wrong in ["a\nb", "\0", "\u{85}", &long] {
            let identified = NotificationInput { source_id: wrong.to_owned(), ..input() };
            assert!(validate(identified).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn all_violations_are_reported_together() {
        let wrong = NotificationInput { source: String::new(), action: "\t".to_owned(), ..input() };
        let Err(Fault::Invalid(violations)) = validate(wrong) else { panic!("it was accepted") };
        let fields: Vec<_> = violations.iter().map(|violation| violation.field.as_str()).collect();
        assert_eq!(fields, ["Source", "Action"]);
    }
}
