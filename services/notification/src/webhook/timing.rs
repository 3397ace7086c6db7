//! When the messages of a webhook are sent, and how many notifications they have.

use assay_proto::notification::{WebhookDigest, WebhookFormat, WebhookInput};
use assay_records::Check;

/// Maximum number of events in a batch.
const LARGEST_BATCH: i32 = 10_000;

/// Maximum and default of the time that events are collected for, in seconds.
const LONGEST_WINDOW: i32 = 300;
const USUAL_WINDOW: i32 = 5;

/// Maximum length of the name of a time zone, in bytes.
const LONGEST_ZONE: usize = 64;

/// Checks the fields about time and fills in their defaults. Whether the time zone exists is for the database
/// to say.
pub(super) fn check(check: &mut Check, input: &mut WebhookInput) {
    if input.format() == WebhookFormat::Unspecified {
        input.set_format(WebhookFormat::CloudEvents);
    }
    if input.digest() == WebhookDigest::Unspecified {
        input.set_digest(WebhookDigest::None);
    }
    input.batch_size = if input.batch_size == 0 { 1 } else { input.batch_size };
    if input.batch_window_in_sec == 0 {
        input.batch_window_in_sec = USUAL_WINDOW;
    }
    if input.time_zone.is_empty() {
        "UTC".clone_into(&mut input.time_zone);
    }
    if !(1..=LARGEST_BATCH).contains(&input.batch_size) {
        check.refuse("BatchSize", format!("must be from 1 to {LARGEST_BATCH}"));
    } else if input.batch_size > 1 && input.format() != WebhookFormat::CloudEvents {
        check.refuse("BatchSize", "must be 1, unless Format is CloudEvents");
    }
    if !(1..=LONGEST_WINDOW).contains(&input.batch_window_in_sec) {
        check.refuse("BatchWindowInSec", format!("must be from 1 to {LONGEST_WINDOW}"));
    }
    let is_of_events =
        matches!(input.format(), WebhookFormat::CloudEvents | WebhookFormat::CdEvents);
    if is_of_events && input.digest() != WebhookDigest::None {
        check.refuse("Digest", "must be None, unless Format is one of a chat; set BatchSize");
    }
    let is_zone = |char: char| char.is_ascii_alphanumeric() || "/_+-".contains(char);
    if input.time_zone.len() > LONGEST_ZONE || !input.time_zone.chars().all(is_zone) {
        check.refuse("TimeZone", "must be the name of a time zone, such as Europe/Berlin");
    }
    quiet_hours(check, input);
}

fn quiet_hours(check: &mut Check, input: &mut WebhookInput) {
    for time in [&mut input.quiet_from, &mut input.quiet_until] {
        if time.as_deref() == Some("") {
            *time = None;
        }
    }
    let times = [("QuietFrom", &input.quiet_from), ("QuietUntil", &input.quiet_until)];
    for (field, time) in times {
        if time.as_deref().is_some_and(|time| !is_time(time)) {
            check.refuse(field, "must be a time of day from 00:00 to 23:59");
        }
    }
    match (&input.quiet_from, &input.quiet_until) {
        (Some(_), None) => check.refuse("QuietUntil", "must be set together with QuietFrom"),
        (None, Some(_)) => check.refuse("QuietFrom", "must be set together with QuietUntil"),
        (Some(from), Some(until)) if from == until => {
            check.refuse("QuietUntil", "must not be the same as QuietFrom");
        }
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    let Some((hour, minute)) = text.split_once(':') else { return false };
    let is_below = |part: &str, limit: u8| {
        let is_number = part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number && part.parse().is_ok_and(|number: u8| number < limit)
    };
    is_below(hour, 24) && is_below(minute, 60)
}

#[cfg(test)]
mod tests {
    use assay_proto::Fault;

    use super::*;

    fn fields(mut input: WebhookInput) -> Vec<String> {
        let mut found = Check::default();
        check(&mut found, &mut input);
        match found.done() {
            Err(Fault::Invalid(violations)) => {
                violations.into_iter().map(|violation| violation.field).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn missing_fields_have_defaults() {
        let mut input = WebhookInput::default();
        check(&mut Check::default(), &mut input);
        assert_eq!(
            (input.format(), input.digest()),
            (WebhookFormat::CloudEvents, WebhookDigest::None)
        );
        let (size, window, zone) = (input.batch_size, input.batch_window_in_sec, input.time_zone);
        assert_eq!((size, window, zone.as_str()), (1, 5, "UTC"));
    }

    #[test]
    fn batches_are_for_events_and_digests_for_chats() {
        let of = |format: WebhookFormat, batch_size, digest: WebhookDigest| {
            let (format, digest) = (format.into(), digest.into());
            fields(WebhookInput { format, batch_size, digest, ..WebhookInput::default() })
        };
        let (none, daily) = (WebhookDigest::None, WebhookDigest::Daily);
        assert_eq!(of(WebhookFormat::CloudEvents, 10_000, none), [""; 0]);
        assert_eq!(of(WebhookFormat::Slack, 1, daily), [""; 0]);
        assert_eq!(of(WebhookFormat::CloudEvents, 10_001, none), ["BatchSize"]);
        assert_eq!(of(WebhookFormat::CloudEvents, -1, none), ["BatchSize"]);
        assert_eq!(of(WebhookFormat::Slack, 2, none), ["BatchSize"]);
        assert_eq!(of(WebhookFormat::CdEvents, 1, daily), ["Digest"]);
    }

    #[test]
    fn quiet_hours_have_two_different_times() {
        let of = |from: Option<&str>, until: Option<&str>| {
            let [quiet_from, quiet_until] = [from, until].map(|time| time.map(ToOwned::to_owned));
            fields(WebhookInput { quiet_from, quiet_until, ..WebhookInput::default() })
        };
        assert_eq!(of(Some("22:00"), Some("07:30")), [""; 0]);
        assert_eq!(of(Some(""), None), [""; 0]);
        assert_eq!(of(Some("22:00"), None), ["QuietUntil"]);
        assert_eq!(of(None, Some("07:00")), ["QuietFrom"]);
        assert_eq!(of(Some("07:00"), Some("07:00")), ["QuietUntil"]);
        for wrong in ["24:00", "7:00", "07:60", "0700", "+1:00", "07:00:00"] {
            assert_eq!(of(Some(wrong), Some("12:00")), ["QuietFrom"], "{wrong}");
        }
        for wrong in ["Europe/Ber lin", "\0", "'", &"x".repeat(65)] {
            let input = WebhookInput { time_zone: wrong.to_owned(), ..WebhookInput::default() };
            assert_eq!(fields(input), ["TimeZone"], "{wrong}");
        }
    }
}
