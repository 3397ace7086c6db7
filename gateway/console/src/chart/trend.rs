//! Durations over time.

use maud::Markup;

use super::canvas::{Canvas, summary};
use crate::record::Outcome;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// Number of columns from which on a chart is filled. A few columns are not wider than of so many.
const FILLED: usize = 20;

/// Number of columns of a filled chart that have a date.
const DATES: usize = 5;

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

/// Returns the run at the beginning of each fifth of the chart, if there is one.
pub(crate) fn dated(runs: usize) -> [Option<usize>; DATES] {
    std::array::from_fn(|part| Some(part * runs.max(FILLED) / DATES).filter(|run| *run < runs))
}

/// Returns the left edges and the widths of columns.
#[expect(clippy::cast_precision_loss, reason = "numbers of columns are small")]
fn columns(count: usize) -> impl Iterator<Item = (f64, f64)> {
    let step = WIDTH / count.max(FILLED) as f64;
    (0..count).map(move |index| (index as f64 * step, step * 0.8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_stand_below_the_columns_of_their_runs() {
        assert_eq!(dated(50), [0, 10, 20, 30, 40].map(Some));
        assert_eq!(dated(27), [0, 5, 10, 16, 21].map(Some));
        assert_eq!(dated(6), [Some(0), Some(4), None, None, None]);
        assert_eq!(dated(0), [None; DATES]);
    }
}
