//! About how long a running execution will still take, as the latest runs of its test set on the default branch did.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use http::HeaderValue;
use maud::{Markup, html};

use super::runs;
use crate::{
    api::Api,
    chart::Quartiles,
    failure::Failure,
    record::{Summary, Time},
};

/// Number of runs that the estimate is from.
const RUNS: u32 = 10;

/// Returns how long the latest runs of a branch have taken, in seconds, if an execution is running and that is known.
pub(super) async fn usual_duration(
    api: &Api,
    summary: &Summary,
    branch: &str,
) -> Result<Option<f64>, Failure> {
    if !summary.execution.is_running() || branch.is_empty() {
        return Ok(None);
    }
    let runs = runs::latest(api, summary, (Some(branch), None), RUNS).await?;
    let durations = runs.iter().map(|run| run.duration_in_sec).filter(|seconds| *seconds > 0.0);
    Ok(Quartiles::of(durations.collect()).map(|quartiles| quartiles.median))
}

/// Says how long an execution will still run, unless it has been running for longer than usual.
#[expect(clippy::disallowed_methods, reason = "an estimate in minutes")]
pub(super) fn time_left(start: Time, usual: f64) -> Markup {
    let left = minutes_left(start, usual, Utc::now());
    html! {
        @if let Some(minutes) = left {
            span title="Estimate from the durations of the latest runs on the default branch" {
                ", about " @if minutes >= 60 { (minutes / 60) " h " } (minutes % 60) " min left"
            }
        }
    }
}

/// Returns the number of minutes until an execution ends that takes this number of seconds, rounded up.
fn minutes_left(start: Time, usual: f64, now: Time) -> Option<i64> {
    let usual = TimeDelta::from_std(Duration::try_from_secs_f64(usual).ok()?).ok()?;
    let left = start.checked_add_signed(usual)?.signed_duration_since(now);
    (left > TimeDelta::zero()).then(|| left.num_minutes() + 1)
}

/// Returns the entity tag of a header with these times, from that of its results: another one each minute.
#[expect(clippy::disallowed_methods, reason = "an estimate in minutes")]
pub(super) fn tag_of_minute(results: &HeaderValue) -> Option<HeaderValue> {
    with_minute(results, Utc::now())
}

fn with_minute(results: &HeaderValue, now: Time) -> Option<HeaderValue> {
    let results = results.to_str().ok()?.trim_end_matches('"');
    HeaderValue::try_from(format!("{results}.{}\"", now.timestamp() / 60)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_what_is_missing_to_the_usual_duration() {
        let time = |text: &str| text.parse::<Time>().unwrap();
        let start = time("2026-03-01T12:00:00Z");
        let left = |usual, now| minutes_left(start, usual, time(now));
        assert_eq!(left(720.0, "2026-03-01T12:03:30Z"), Some(9));
        assert_eq!(left(720.0, "2026-03-01T12:11:59Z"), Some(1));
        assert_eq!(left(720.0, "2026-03-01T12:12:00Z"), None, "it takes longer than usual");
        for unusual in [f64::NAN, f64::INFINITY, 1e300, -1.0] {
            assert_eq!(left(unusual, "2026-03-01T12:03:30Z"), None);
        }
    }

    #[test]
    fn the_time_left_is_shown_again_each_minute_although_no_result_arrives() {
        let results = HeaderValue::from_static("\"7.ab\"");
        let tag = |now: &str| with_minute(&results, now.parse().unwrap()).unwrap();
        let first = tag("2026-03-01T12:03:00Z");
        assert!(first.to_str().is_ok_and(|tag| tag.starts_with("\"7.ab.") && tag.ends_with('"')));
        assert_eq!(first, tag("2026-03-01T12:03:59Z"));
        assert_ne!(first, tag("2026-03-01T12:04:00Z"));
    }
}
