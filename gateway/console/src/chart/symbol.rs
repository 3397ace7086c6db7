//! Symbols of results: a different shape for each.

use maud::{Markup, html};

use crate::record::Outcome;

/// Shapes of the symbols: the id, the outline and the drawing in it.
const SHAPES: [(&str, &str, &str); 6] = [
    ("pass", "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "m4.8 8.2 2.3 2.3 4.1-4.6"),
    ("fail", "M5.1 1h5.8L15 5.1v5.8L10.9 15H5.1L1 10.9V5.1Z", "m5.5 5.5 5 5m0-5-5 5"),
    ("error", "M8 1.2 15.4 14.6H.6Z", "M8 6v4m0 2.2v.3"),
    ("abort", "M2.5 2.5h11v11h-11Z", "M5.5 8h5"),
    ("cancel", "M8 1a7 7 0 1 0 0 14A7 7 0 0 0 8 1Z", "M5 8h6"),
    ("flaky", "M8 1 15 8 8 15 1 8Z", "M4.8 8.8q1.6-2.6 3.2-.8t3.2-.8"),
];

/// Defines the symbols, once in a page.
pub(crate) fn sprite() -> Markup {
    html! {
        svg.sprite aria-hidden="true" {
            @for (id, outline, drawing) in SHAPES {
                symbol id=(id_of(id)) viewBox="0 0 16 16" {
                    path d=(outline) {}
                    path.k d=(drawing) {}
                }
            }
            symbol #g-none viewBox="0 0 16 16" { circle.o cx="8" cy="8" r="5.5" {} }
        }
    }
}

fn id_of(symbol: &str) -> String {
    format!("g-{symbol}")
}

/// Returns the symbol of a result, with its name for readers that do not see it.
pub(crate) fn glyph(outcome: Outcome) -> Markup {
    draw(symbol(outcome), outcome.class(), outcome.label())
}

fn symbol(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "pass",
        Outcome::Failed => "fail",
        Outcome::Error => "error",
        Outcome::Aborted => "abort",
        Outcome::Canceled => "cancel",
        Outcome::NotExecuted | Outcome::Absent => "none",
    }
}

/// Returns the symbol of the result of an execution, with the name that its page has for it. Failures and errors of its
/// tests have one result there.
pub(crate) fn glyph_of_run(outcome: Outcome) -> Markup {
    let shown = if outcome.is_failure() { Outcome::Failed } else { outcome };
    draw(symbol(shown), shown.class(), outcome.summary())
}

/// Returns the symbol of a test that passed after an attempt that did not.
pub(crate) fn flaky() -> Markup {
    draw("flaky", "flaky", "Flaky")
}

fn draw(symbol: &str, class: &str, label: &str) -> Markup {
    html! {
        svg class=(format!("g {class}")) role="img" aria-label=(label) {
            use href=(format!("#{}", id_of(symbol))) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_with_failures_and_errors_failed() {
        let mixed = glyph_of_run(Outcome::Error).into_string();
        assert!(mixed.contains("aria-label=\"Failed\"") && mixed.contains("#g-fail"), "{mixed}");
        let canceled = glyph_of_run(Outcome::Canceled).into_string();
        assert!(canceled.contains("aria-label=\"Canceled\""), "{canceled}");
        let test = glyph(Outcome::Error).into_string();
        assert!(test.contains("aria-label=\"Error\"") && test.contains("#g-error"), "{test}");
    }
}
