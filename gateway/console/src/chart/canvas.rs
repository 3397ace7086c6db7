//! Rectangles that a chart consists of.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::record::Outcome;

/// A chart of rectangles, one path for each class of results.
#[derive(Default)]
pub(super) struct Canvas {
    paths: Vec<(&'static str, String)>,
}

impl Canvas {
    pub(super) fn rectangle(&mut self, class: &'static str, [x, y, width, height]: [f64; 4]) {
        let at = self.paths.iter().position(|(known, _)| *known == class);
        let at = at.unwrap_or_else(|| {
            self.paths.push((class, String::new()));
            self.paths.len() - 1
        });
        let (x, y, width, height) = (round(x), round(y), round(width), round(height));
        let _ = write!(self.paths[at].1, "M{x} {y}h{width}v{height}h-{width}z");
    }

    pub(super) fn draw(
        &self,
        class: &str,
        (width, height): (f64, f64),
        stretch: bool,
        label: &str,
    ) -> Markup {
        let (width, height) = (round(width), round(height));
        html! {
            svg class=(class) viewBox=(format!("0 0 {width} {height}"))
                preserveAspectRatio=[stretch.then_some("none")] role="img" aria-label=(label)
            { @for (class, path) in &self.paths { path class=(class) d=(path) {} } }
        }
    }
}

pub(super) fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Returns how many of these results are of each kind, as text: `9 passed, 1 failed`.
pub(super) fn summary(outcomes: &[Outcome]) -> String {
    const KINDS: [Outcome; 6] = [
        Outcome::Passed,
        Outcome::Failed,
        Outcome::Error,
        Outcome::Aborted,
        Outcome::Canceled,
        Outcome::NotExecuted,
    ];
    let count = |kind| outcomes.iter().filter(|outcome| **outcome == kind).count();
    let kinds = KINDS.map(|kind| (kind, count(kind))).into_iter().filter(|(_, count)| *count > 0);
    let kinds: Vec<_> =
        kinds.map(|(kind, count)| format!("{count} {}", kind.label().to_lowercase())).collect();
    if kinds.is_empty() { "no results".to_owned() } else { kinds.join(", ") }
}
