//! What a notification may say.

use assay_proto::{Fault, Violation, notification::NotificationInput};

/// The state of what has none.
pub(crate) const NO_STATE: &str = "None";

/// The longest name of a kind, an action or a state, in characters.
const LONGEST_NAME: usize = 128;

/// The longest id, in characters; other systems' need not be UUIDs.
const LONGEST_ID: usize = 255;

/// Checks what a client has sent.
pub(crate) fn valid(input: NotificationInput) -> Result<NotificationInput, Fault> {
    let state = input.state.filter(|state| !state.is_empty());
    let state = state.unwrap_or_else(|| NO_STATE.to_owned());
    let checks = [
        ("Source", name(&input.source)),
        ("SourceId", id(&input.source_id)),
        ("Target", name(&input.target)),
        ("TargetId", input.target_id.as_deref().map_or(Ok(()), id)),
        ("Action", name(&input.action)),
        ("State", name(&state)),
    ];
    let violation = |(field, checked): (&str, Result<(), String>)| {
        checked.err().map(|problem| Violation { field: field.to_owned(), problem })
    };
    let violations: Vec<Violation> = checks.into_iter().filter_map(violation).collect();
    if !violations.is_empty() {
        return Err(Fault::Invalid(violations));
    }
    Ok(NotificationInput { state: Some(state), ..input })
}

fn name(text: &str) -> Result<(), String> {
    let problem = || format!("must be 1 to {LONGEST_NAME} characters without control characters");
    is_name(text).then_some(()).ok_or_else(problem)
}

/// Whether a kind, an action or a state may be called so. Any text of one line may: a subject of
/// NATS gets a token made of it.
pub(crate) fn is_name(text: &str) -> bool {
    let count = text.chars().take(LONGEST_NAME + 1).count();
    (1..=LONGEST_NAME).contains(&count) && !text.contains(char::is_control)
}

fn id(text: &str) -> Result<(), String> {
    if text.chars().count() <= LONGEST_ID && !text.contains(char::is_control) {
        return Ok(());
    }
    Err(format!("must be at most {LONGEST_ID} characters without control characters"))
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
    fn without_a_state_it_is_none() {
        assert_eq!(valid(input()).unwrap().state.as_deref(), Some("None"));
        let empty = NotificationInput { state: Some(String::new()), ..input() };
        assert_eq!(valid(empty).unwrap().state.as_deref(), Some("None"));
        let submitted = NotificationInput { state: Some("Submitted".to_owned()), ..input() };
        assert_eq!(valid(submitted).unwrap().state.as_deref(), Some("Submitted"));
    }

    #[test]
    fn names_are_any_text_of_one_line() {
        let longest = "ä".repeat(128);
        for good in ["A", "TestCase2", "test case", "a.b", "a>", "*", &longest] {
            assert!(name(good).is_ok(), "{good:?} was refused");
        }
        let long = "x".repeat(129);
        for wrong in ["", "a\0", "a\nb", "\u{85}", &long] {
            assert!(name(wrong).is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn ids_are_any_text_of_one_line() {
        let longest = "ä".repeat(255);
        for good in ["", "a/b c", &longest] {
            assert!(id(good).is_ok(), "{good:?} was refused");
        }
        let long = "x".repeat(256);
        for wrong in ["a\nb", "\0", "\u{85}", &long] {
            assert!(id(wrong).is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let wrong = NotificationInput { source: String::new(), action: "\t".to_owned(), ..input() };
        let Err(Fault::Invalid(violations)) = valid(wrong) else { panic!("it was taken") };
        let fields: Vec<_> = violations.iter().map(|violation| violation.field.as_str()).collect();
        assert_eq!(fields, ["Source", "Action"]);
    }
}
