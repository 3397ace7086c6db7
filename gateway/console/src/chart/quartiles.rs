//! The distribution of durations as a box plot.

use maud::{Markup, html};

use super::canvas::round;
use crate::text::duration;

/// Quartiles of durations, in seconds, and the whiskers around them.
#[derive(Debug, PartialEq)]
pub(crate) struct Quartiles {
    lower: f64,
    pub(crate) first_quartile: f64,
    pub(crate) median: f64,
    pub(crate) third_quartile: f64,
    upper: f64,
    outliers: Vec<f64>,
}

impl Quartiles {
    /// Computes the quartiles of durations, with linear interpolation. Returns `None` without any.
    pub(crate) fn of(mut durations: Vec<f64>) -> Option<Self> {
        durations.sort_by(f64::total_cmp);
        let (first_quartile, median, third_quartile) =
            (quantile(&durations, 0.25)?, quantile(&durations, 0.5)?, quantile(&durations, 0.75)?);
        let reach = 1.5 * (third_quartile - first_quartile);
        let fence = first_quartile - reach..=third_quartile + reach;
        let (inside, outliers): (Vec<_>, Vec<_>) =
            durations.into_iter().partition(|seconds| fence.contains(seconds));
        let (lower, upper) = (*inside.first()?, *inside.last()?);
        Some(Self { lower, first_quartile, median, third_quartile, upper, outliers })
    }

    pub(crate) fn shortest(&self) -> f64 {
        self.outliers.iter().copied().fold(self.lower, f64::min)
    }

    pub(crate) fn longest(&self) -> f64 {
        self.outliers.iter().copied().fold(self.upper, f64::max)
    }

    /// Returns by how many percent a duration differs from the median.
    pub(crate) fn deviation(&self, seconds: f64) -> f64 {
        if self.median > 0.0 { 100.0 * (seconds - self.median) / self.median } else { 0.0 }
    }
}

/// Returns the value below which this share of sorted durations is.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions in a short list"
)]
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * (sorted.len().checked_sub(1)? as f64);
    let below = sorted[position.floor() as usize];
    let above = sorted[position.ceil() as usize];
    Some(below + (above - below) * position.fract())
}

/// Draws the box plot from the shortest to the longest duration.
pub(crate) fn box_plot(quartiles: &Quartiles) -> Markup {
    let (shortest, longest) = (quartiles.shortest(), quartiles.longest());
    let x =
        |seconds: f64| round(20.0 + 960.0 * (seconds - shortest) / (longest - shortest).max(0.001));
    let [lower, first, median, third, upper] = [
        quartiles.lower,
        quartiles.first_quartile,
        quartiles.median,
        quartiles.third_quartile,
        quartiles.upper,
    ]
    .map(x);
    let label = format!(
        "Durations: median {}, half of them from {} to {}, outliers: {}",
        duration(quartiles.median),
        duration(quartiles.first_quartile),
        duration(quartiles.third_quartile),
        quartiles.outliers.len(),
    );
    let width = (third - first).max(2.0);
    html! {
        svg.quartiles viewBox="0 0 1000 40" preserveAspectRatio="none" role="img" aria-label=(label) {
            path.axis d="M10 39.5H990" {}
            path.line d=(format!("M{lower} 12v16M{lower} 20H{first}M{third} 20H{upper}M{upper} 12v16")) {}
            path.box d=(format!("M{first} 6h{width}v28h-{width}z")) {}
            path.median d=(format!("M{median} 6v28")) {}
            @for seconds in &quartiles.outliers {
                path.outlier d=(format!("M{} 14v12", x(*seconds))) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_interpolated_and_outliers_are_outside_the_whiskers() {
        let quartiles = Quartiles::of(vec![4.0, 1.0, 3.0, 2.0, 100.0]).unwrap();
        assert_eq!(
            quartiles,
            Quartiles {
                lower: 1.0,
                first_quartile: 2.0,
                median: 3.0,
                third_quartile: 4.0,
                upper: 4.0,
                outliers: vec![100.0]
            }
        );
        assert!((quartiles.deviation(3.3) - 10.0).abs() < 0.001);
        assert_eq!(Quartiles::of(Vec::new()), None);
    }
}
