//! The titles of messages.

use super::{
    facts::{Changes, Facts},
    span::{Line, Span, name, words},
};

/// Returns the title of a message about one notification.
pub(super) fn title(facts: &Facts) -> Line {
    if facts.is_of_client() {
        let parts = [&facts.source, &facts.action].map(|part| name(&spaced(part)));
        let [source, action] = parts;
        return vec![words("Client: "), source, words(": "), action];
    }
    if facts.source == "Webhook" && facts.action == "Tested" {
        return vec![words("Test of a webhook: it works")];
    }
    if facts.is_end() {
        return title_of_end(facts);
    }
    if facts.is_about_execution() {
        return title_of_execution(facts);
    }
    if facts.is_report() {
        let outcome = facts.result.as_deref().map_or("finished", outcome);
        let mut line = vec![subject(facts, facts.test_case_identifier.as_deref())];
        line.push(words(format!(" {outcome}")));
        if let Some(change) = facts.change.as_deref().filter(|change| *change != "None") {
            line.push(words(format!(" ({})", spaced(change))));
        }
        line.extend(place(facts));
        return line;
    }
    vec![name(&spaced(&facts.source)), words(": "), name(&spaced(&facts.action))]
}

/// The name of what the notification is about, or its kind and its id.
fn subject(facts: &Facts, known: Option<&str>) -> Span {
    match known.filter(|known| !known.is_empty()) {
        Some(known) => name(known),
        None => name(&format!("{} {}", facts.source, facts.source_id)),
    }
}

fn title_of_end(facts: &Facts) -> Line {
    let outcome = match (facts.action.as_str(), facts.verdict.as_deref()) {
        ("Canceled", _) => "was canceled",
        (_, Some("Passed")) => "passed",
        (_, Some("Failed")) => "failed",
        _ => facts.result.as_deref().map_or("ended", outcome),
    };
    let mut line = vec![subject(facts, facts.test_set_name.as_deref())];
    line.push(words(format!(" {outcome}")));
    line.extend(place(facts));
    if let Some(news) = facts.changes.as_ref().and_then(news) {
        line.push(words(format!(": {news}")));
    }
    line
}

/// The title of a notification about an execution itself, apart from its end.
fn title_of_execution(facts: &Facts) -> Line {
    let what = match (facts.action.as_str(), facts.verdict.as_deref()) {
        ("Judged", Some("Passed")) => "met its rules",
        ("Judged", Some("Failed")) => "did not meet its rules",
        ("Judged", _) => "was judged",
        ("Failing", _) => "is failing",
        ("Waiting", _) => "waits for an engine",
        _ => "has changed",
    };
    let mut line = vec![subject(facts, facts.test_set_name.as_deref())];
    line.push(words(format!(" {what}")));
    line.extend(place(facts));
    if let Some(news) = facts.changes.as_ref().and_then(news) {
        line.push(words(format!(": {news}")));
    }
    line
}

/// The branch, if there is one.
fn place(facts: &Facts) -> Line {
    let branch = facts.branch.as_deref().filter(|branch| !branch.is_empty());
    branch.map_or_else(Line::new, |branch| vec![words(" on "), name(branch)])
}

fn outcome(result: &str) -> &'static str {
    match result {
        "Passed" => "passed",
        "Failed" => "failed",
        "Error" => "ended with an error",
        "Aborted" => "was aborted",
        "Canceled" => "was canceled",
        _ => "ended",
    }
}

/// Returns numbers that are not zero, such as `2 new failures, 1 fixed`.
fn news(changes: &Changes) -> Option<String> {
    let failures = if changes.new == 1 { "new failure" } else { "new failures" };
    counts(&[
        (changes.new, failures),
        (changes.cause_changed, "failing for another cause"),
        (changes.fixed, "fixed"),
        (changes.flaky, "flaky"),
        (changes.muted, "muted"),
    ])
}

/// Returns the counts that are not zero, or none if all are.
pub(super) fn counts(counted: &[(i32, &str)]) -> Option<String> {
    let counts = counted.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts.map(|(count, of)| format!("{count} {of}")).collect();
    (!counts.is_empty()).then(|| counts.join(", "))
}

/// Returns a name of several words in lower case but for its first letter: `Known failure`.
fn spaced(name: &str) -> String {
    let mut text = String::new();
    let mut previous = ' ';
    for char in name.chars() {
        if char.is_uppercase() && previous.is_lowercase() {
            text.push(' ');
            text.extend(char.to_lowercase());
        } else {
            text.push(char);
        }
        previous = char;
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::format::span::text;

    fn title_of(fields: Value) -> String {
        text(&title(&serde_json::from_value(fields).unwrap()))
    }

    #[test]
    fn other_notifications_say_what_has_happened() {
        let report = json!({
            "Source": "TestCase", "Target": "TestReport", "Action": "Finished", "Result": "Error",
            "Change": "CauseChanged", "TestCaseIdentifier": "pay.card", "Branch": "dev",
        });
        assert_eq!(title_of(report), "pay.card ended with an error (Cause changed) on dev");
        let other = json!({"Source": "KnownFailure", "Target": "Project", "Action": "Expired"});
        assert_eq!(title_of(other), "Known failure: Expired");
        let canceled = json!({
            "Source": "TestSet", "SourceId": "7", "Target": "Execution", "Action": "Canceled",
        });
        assert_eq!(title_of(canceled), "TestSet 7 was canceled");
    }

    #[test]
    fn an_execution_is_judged_fails_or_waits() {
        let of = |action: &str, verdict: Option<&str>| {
            title_of(json!({
                "Source": "Execution", "SourceId": "1", "Target": "TestSet", "Action": action,
                "Verdict": verdict, "TestSetName": "Checkout", "Branch": "main",
            }))
        };
        assert_eq!(of("Judged", Some("Failed")), "Checkout did not meet its rules on main");
        assert_eq!(of("Failing", None), "Checkout is failing on main");
        assert_eq!(of("Waiting", None), "Checkout waits for an engine on main");
    }

    #[test]
    fn a_notification_of_a_client_never_looks_like_one_of_assay() {
        for (source, target, action) in [
            ("TestSet", "Execution", "Completed"),
            ("TestCase", "TestReport", "Finished"),
            ("Execution", "TestSet", "Judged"),
            ("Webhook", "Customer", "Tested"),
        ] {
            let title = title_of(json!({
                "Source": source, "SourceId": "7", "Target": target, "Action": action,
                "Origin": "Client",
            }));
            assert!(title.starts_with("Client: "), "{title}");
        }
    }
}
