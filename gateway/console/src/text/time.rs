//! Times in UTC, which the script shows in the time zone of the browser.

use chrono::{DateTime, NaiveTime, TimeDelta, Utc};
use maud::{Markup, html};

/// Renders a time with the year.
pub(crate) fn long_time(time: DateTime<Utc>) -> Markup {
    element(time, "long", "%-d %b %Y, %H:%M UTC")
}

/// Renders a time for lists. The script leaves this year out, and shows how long ago a time of the last
/// day was.
pub(crate) fn short_time(time: DateTime<Utc>) -> Markup {
    element(time, "short", "%-d %b %Y, %H:%M UTC")
}

/// Renders the last moment before a time, as the day that ends then if one does.
pub(crate) fn time_before(time: DateTime<Utc>) -> Markup {
    if time.time() == NaiveTime::MIN {
        element(time, "until", &(time - TimeDelta::days(1)).format("%-d %b %Y UTC").to_string())
    } else {
        element(time, "until", "%-d %b %Y, %H:%M UTC")
    }
}

/// Renders since when something has been running. The script shows for how long.
pub(crate) fn time_since(time: DateTime<Utc>) -> Markup {
    element(time, "for", "since %-d %b %Y, %H:%M UTC")
}

/// Returns the beginning of a tooltip. The script replaces it by the local time, if the link has the
/// [`exact_time`] as `data-time`.
pub(crate) fn tooltip_time(time: DateTime<Utc>) -> String {
    time.format("%-d %b %Y, %H:%M UTC").to_string()
}

/// Returns a time as the script reads it.
pub(crate) fn exact_time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn element(time: DateTime<Utc>, form: &str, format: &str) -> Markup {
    let exact = exact_time(time);
    let title = time.format("%Y-%m-%d %H:%M:%S UTC").to_string();
    html! { time datetime=(exact) data-form=(form) title=(title) { (time.format(format).to_string()) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_machine_readable_and_in_utc() {
        let time = "2026-11-02T09:05:00.123Z".parse().unwrap();
        let html = short_time(time).into_string();
        assert!(html.contains("datetime=\"2026-11-02T09:05:00Z\""), "{html}");
        assert!(html.ends_with(">2 Nov 2026, 09:05 UTC</time>"), "{html}");
    }

    #[test]
    fn a_time_without_a_script_has_its_day_and_zone() {
        let html = time_since("2026-11-02T09:05:00Z".parse().unwrap()).into_string();
        assert!(html.ends_with(">since 2 Nov 2026, 09:05 UTC</time>"), "{html}");
    }

    #[test]
    fn a_mute_ends_with_a_day_or_at_a_time() {
        let shown = |time: &str| time_before(time.parse().unwrap()).into_string();
        assert!(shown("2027-01-01T00:00:00Z").ends_with(">31 Dec 2026 UTC</time>"));
        assert!(shown("2027-01-01T08:00:00Z").ends_with(">1 Jan 2027, 08:00 UTC</time>"));
    }
}
