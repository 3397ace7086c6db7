//! Results in a row: of one test in several executions, or of all tests of one execution.

use maud::Markup;

use super::canvas::{Canvas, summary};
use crate::{
    record::{Outcome, Statistic},
    text::number,
};

/// Height of a strip.
const HEIGHT: f64 = 16.0;

/// Distance and width of the results in a strip.
const STEP: f64 = 6.0;
const WIDTH: f64 = 5.0;

/// Returns the height of a result, the worse the higher.
fn height(outcome: Outcome) -> f64 {
    match outcome {
        Outcome::Failed | Outcome::Error => HEIGHT,
        Outcome::Aborted => 12.0,
        Outcome::Passed => 7.0,
        Outcome::Canceled => 3.5,
        Outcome::NotExecuted | Outcome::Absent => 1.5,
    }
}

/// Draws the results of a test in several executions, the latest last.
pub(crate) fn strip(outcomes: &[Outcome]) -> Markup {
    let mut canvas = Canvas::default();
    let mut x = 0.0;
    for outcome in outcomes {
        let height = height(*outcome);
        canvas.rectangle(outcome.class(), [x, HEIGHT - height, WIDTH, height]);
        if *outcome == Outcome::Error {
            // A gap distinguishes errors from failures.
            canvas.rectangle("gap", [x, HEIGHT - 5.0, WIDTH, 1.5]);
        }
        x += STEP;
    }
    let label = format!("Last {} runs: {}", outcomes.len(), summary(outcomes));
    canvas.draw("strip", (x - 1.0, HEIGHT), false, &label)
}

/// Draws the results of a test as a row of a grid, with columns of the same width as its head.
pub(crate) fn cells(letters: &str) -> Markup {
    let outcomes: Vec<_> = letters.chars().map(Outcome::of_letter).collect();
    let mut canvas = Canvas::default();
    let mut x = 0.0;
    for outcome in &outcomes {
        let height = height(*outcome) * 1.25;
        canvas.rectangle(outcome.class(), [x + 3.0, 22.0 - height, 18.0, height]);
        if *outcome == Outcome::Error {
            canvas.rectangle("gap", [x + 3.0, 15.0, 18.0, 2.0]);
        }
        x += 24.0;
    }
    let label = match outcomes.as_slice() {
        [outcome] => outcome.label().to_owned(),
        outcomes => format!("{} runs: {}", outcomes.len(), summary(outcomes)),
    };
    canvas.draw("cells", (x, 24.0), false, &label)
}

/// Draws numbers of failures above the columns of a grid, on a scale of their own.
#[expect(clippy::cast_precision_loss, reason = "numbers of tests are small enough")]
pub(crate) fn failures(counts: impl Iterator<Item = i64>) -> Markup {
    const BASE: f64 = 32.0;
    let counts: Vec<_> = counts.collect();
    let most = counts.iter().copied().max().unwrap_or_default();
    let mut canvas = Canvas::default();
    let mut x = 0.0;
    for count in &counts {
        let height = BASE * *count as f64 / most.max(1) as f64;
        let (class, height) = if *count > 0 { ("fail", height.max(2.0)) } else { ("pass", 0.0) };
        canvas.rectangle(class, [x + 3.0, BASE - height, 18.0, height + 2.0]);
        x += 24.0;
    }
    let listed = counts.iter().map(|count| number(*count)).collect::<Vec<_>>().join(", ");
    let label = format!("Failures of the executions, the latest last: {listed}");
    canvas.draw("cells tall", (x, BASE + 2.0), false, &label)
}

/// Draws the shares of the results of an execution.
pub(crate) fn bar(statistic: &Statistic) -> Markup {
    let parts = [
        ("pass", statistic.passed, "passed"),
        ("fail", statistic.failed, "failed"),
        ("error", statistic.errors, "with an error"),
        ("warn", statistic.aborted, "aborted"),
        ("none", statistic.canceled, "skipped"),
        ("wait", statistic.pending, "pending"),
    ];
    let parts: Vec<_> = parts.into_iter().filter(|(_, count, _)| *count > 0).collect();
    let mut canvas = Canvas::default();
    let mut x = 0.0;
    for (class, width) in widths(&parts) {
        canvas.rectangle(class, [x, 0.0, width - 2.0, 10.0]);
        x += width;
    }
    let counts = parts.iter().map(|(_, count, name)| format!("{} {name}", number(*count)));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let label = format!("{counts} of {}", number(statistic.total));
    canvas.draw("bar", (1000.0, 10.0), true, &label)
}

/// Returns the widths of parts of a bar. Few failures among many tests stay visible.
#[expect(clippy::cast_precision_loss, reason = "numbers of tests are small enough")]
fn widths<'a>(parts: &[(&'a str, i64, &str)]) -> Vec<(&'a str, f64)> {
    const LEAST: f64 = 10.0;
    let total: f64 = parts.iter().map(|(_, count, _)| *count as f64).sum();
    let shares = parts.iter().map(|(class, count, _)| (*class, 1000.0 * *count as f64 / total));
    let shares: Vec<_> = shares.map(|(class, share)| (class, share.max(LEAST))).collect();
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    shares.into_iter().map(|(class, share)| (class, 1000.0 * share / sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_differ_in_height_and_are_described() {
        let outcomes: Vec<_> = "PF".chars().map(Outcome::of_letter).collect();
        let svg = strip(&outcomes).into_string();
        assert!(svg.contains("aria-label=\"Last 2 runs: 1 passed, 1 failed\""), "{svg}");
        assert!(svg.contains("<path class=\"pass\" d=\"M0 9h5v7h-5z\"></path>"), "{svg}");
        assert!(svg.contains("<path class=\"fail\" d=\"M6 0h5v16h-5z\"></path>"), "{svg}");
    }

    #[test]
    fn few_failures_differ_from_fewer() {
        let svg = failures([3, 62, 0].into_iter()).into_string();
        assert!(svg.contains("the latest last: 3, 62, 0\""), "{svg}");
        assert!(
            svg.contains("<path class=\"fail\" d=\"M3 30h18v4h-18zM27 0h18v34h-18z\">"),
            "{svg}"
        );
        assert!(svg.contains("<path class=\"pass\" d=\"M51 32h18v2h-18z\">"), "{svg}");
    }

    #[test]
    fn a_bar_has_the_words_of_its_legend() {
        let statistic = Statistic { total: 3, passed: 2, canceled: 1, ..Statistic::default() };
        let svg = bar(&statistic).into_string();
        assert!(svg.contains("aria-label=\"2 passed, 1 skipped of 3\""), "{svg}");
    }

    #[test]
    fn one_failure_among_many_tests_is_visible() {
        let widths = widths(&[("pass", 19_999, ""), ("fail", 1, "")]);
        assert!(widths[1].1 > 9.0, "{widths:?}");
        assert!((widths[0].1 + widths[1].1 - 1000.0).abs() < 0.01);
    }
}
