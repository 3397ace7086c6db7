//! Results over time.

use maud::Markup;

use super::canvas::{Canvas, summary};
use crate::{
    record::{Outcome, Statistic},
    text::number,
};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// Draws the numbers of failed tests of executions, the latest last, on a scale of their own: few
/// failures among many tests are as visible as many.
#[expect(clippy::cast_precision_loss, reason = "numbers of tests are small enough")]
pub(crate) fn trend(statistics: &[Statistic]) -> Markup {
    const BASE: f64 = HEIGHT - 3.0;
    let scale = BASE / most_failures(statistics).max(1) as f64;
    let mut canvas = Canvas::default();
    for (statistic, (x, width)) in statistics.iter().zip(columns(statistics.len())) {
        let height = statistic.failures() as f64 * scale;
        let class = if height > 0.0 { "fail" } else { "pass" };
        canvas.rectangle(class, [x, BASE - height, width, height + 3.0]);
    }
    let label = match (statistics.first(), statistics.last()) {
        (Some(first), Some(last)) => format!(
            "Failures in the last {} executions: from {} of {} to {} of {}",
            statistics.len(),
            number(first.failures()),
            number(first.total),
            number(last.failures()),
            number(last.total),
        ),
        _ => "No executions".to_owned(),
    };
    canvas.draw("trend", (WIDTH, HEIGHT), true, &label)
}

/// Returns the number of failures at the top of the trend.
pub(crate) fn most_failures(statistics: &[Statistic]) -> i64 {
    statistics.iter().map(Statistic::failures).max().unwrap_or_default()
}

/// Draws the durations of runs of a test, the latest last. Those that did not pass have a mark below
/// the line.
pub(crate) fn durations(runs: &[(f64, Outcome)]) -> Markup {
    const BASE: f64 = 90.0;
    let longest = runs.iter().map(|(seconds, _)| *seconds).fold(0.001, f64::max);
    let mut canvas = Canvas::default();
    for ((seconds, outcome), (x, width)) in runs.iter().zip(columns(runs.len())) {
        let height = (BASE * seconds / longest).max(2.0);
        canvas.rectangle(outcome.class(), [x, BASE - height, width, height]);
        if *outcome != Outcome::Passed {
            canvas.rectangle(outcome.class(), [x, BASE + 4.0, width, 6.0]);
        }
    }
    let outcomes: Vec<_> = runs.iter().map(|(_, outcome)| *outcome).collect();
    let label = format!("Durations of the last {} runs: {}", runs.len(), summary(&outcomes));
    canvas.draw("trend", (WIDTH, HEIGHT), true, &label)
}

/// Returns the left edges and the widths of columns. A few columns are not wider than of twenty.
#[expect(clippy::cast_precision_loss, reason = "numbers of columns are small")]
fn columns(count: usize) -> impl Iterator<Item = (f64, f64)> {
    let step = WIDTH / count.max(20) as f64;
    (0..count).map(move |index| (index as f64 * step, step * 0.8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_failures_differ_from_fewer() {
        let failed = |failed| Statistic { total: 2000, failed, ..Statistic::default() };
        let svg = trend(&[failed(3), failed(62), failed(0)]).into_string();
        let heights = |class: &str| {
            let (_, path) = svg.split_once(&format!("class=\"{class}\" d=\"")).unwrap();
            path.split('"').next().unwrap().matches('v').count()
        };
        assert_eq!(most_failures(&[failed(3), failed(62)]), 62);
        assert!(svg.contains("v7.7") && svg.contains("v100"), "{svg}");
        assert_eq!(heights("pass"), 1, "{svg}");
    }
}
