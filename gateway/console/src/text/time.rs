//! Times in UTC, which the script shows in the time zone of the browser.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

/// Renders a time with the year.
pub(crate) fn long_time(time: DateTime<Utc>) -> Markup {
    element(time, "long", "%-d %b %Y, %H:%M UTC")
}

/// Renders a time without the year, for lists.
pub(crate) fn short_time(time: DateTime<Utc>) -> Markup {
    element(time, "short", "%-d %b, %H:%M")
}

fn element(time: DateTime<Utc>, form: &str, format: &str) -> Markup {
    let exact = time.format("%Y-%m-%dT%H:%M:%SZ").to_string();
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
        assert!(html.ends_with(">2 Nov, 09:05</time>"), "{html}");
    }
}
