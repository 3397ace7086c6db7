//! The outcome of a judgement, as the next page announces it.

use serde::Deserialize;

/// The answer of the interface.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::page) struct Reviewed {
    #[serde(rename = "Reviewed")]
    tests: i64,
    known_failures: i64,
    review_id: String,
    #[serde(skip)]
    pub(super) is_reset: bool,
}

impl Reviewed {
    /// Returns the address of a page that announces the review.
    pub(in crate::page) fn announced_on(&self, page: &str) -> String {
        let separator = if page.contains('?') { '&' } else { '?' };
        let Self { tests, known_failures, review_id, is_reset } = self;
        let done = if *is_reset { "reset" } else { "reviewed" };
        format!("{page}{separator}{done}={tests}&newly_muted={known_failures}&review={review_id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_after_a_review_announces_it() {
        let done = |is_reset| Reviewed {
            tests: 2,
            known_failures: 0,
            review_id: "7".to_owned(),
            is_reset,
        };
        for (page, is_reset, expected) in [
            ("/executions/1", false, "/executions/1?reviewed=2&newly_muted=0&review=7"),
            ("/reports/1?from=a", true, "/reports/1?from=a&reset=2&newly_muted=0&review=7"),
        ] {
            assert_eq!(done(is_reset).announced_on(page), expected);
        }
    }
}
