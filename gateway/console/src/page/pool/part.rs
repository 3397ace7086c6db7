//! The part of the values of a pool that its page shows.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use crate::{api::address, page::paged::unless_empty, record::PoolValue};

/// Number of values on a page.
pub(super) const VALUES: usize = 25;

/// The part of the values that the page shows.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Part {
    /// Id of the value that is in a form.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<String>,
    /// Index of the first value.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
}

impl Part {
    /// Returns the part with a value in a form.
    pub(super) fn with(value: &PoolValue) -> Self {
        Self { value: Some(value.id.clone()), from: None }
    }

    /// Returns the part with the value at an index.
    pub(super) fn at(index: usize) -> Self {
        let from = index / VALUES * VALUES;
        Self { value: None, from: (from > 0).then(|| from.to_string()) }
    }

    /// Returns the index of the first value, with which the value in the form is on the page.
    pub(super) fn begin(&self, values: &[PoolValue]) -> usize {
        let edited = self.value.as_ref();
        let edited = edited.and_then(|id| values.iter().position(|value| value.id == *id));
        let from = self.from.as_ref().and_then(|from| from.parse::<usize>().ok());
        edited.or(from).filter(|index| *index < values.len()).unwrap_or_default() / VALUES * VALUES
    }
}

/// Links to the values before and after those from `begin`.
pub(super) fn pager(path: &str, begin: usize, count: usize) -> Markup {
    let of = |index: usize| address(path, &Part::at(index));
    html! {
        @if count > VALUES {
            nav.pager aria-label="Values" {
                @if begin > 0 { a.button href=(of(begin - VALUES)) rel="prev" { "« Previous values" } }
                @if begin + VALUES < count { a.button href=(of(begin + VALUES)) rel="next" { "Next values »" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_with_a_part_that_has_the_value_in_the_form() {
        let value = |nr: usize| PoolValue { id: format!("v{nr}"), contents: Vec::new() };
        let values: Vec<_> = (0..60).map(value).collect();
        let begin = |value: Option<&str>, from: Option<&str>| {
            let [value, from] = [value, from].map(|text| text.map(str::to_owned));
            Part { value, from }.begin(&values)
        };
        assert_eq!((begin(None, None), begin(None, Some("25"))), (0, 25));
        assert_eq!((begin(Some("v59"), Some("0")), begin(Some("gone"), None)), (50, 0));
        assert_eq!((begin(None, Some("900")), begin(None, Some("-1"))), (0, 0));
        assert_eq!(Part::at(30).from.as_deref(), Some("25"));
        assert_eq!(pager("/p", 25, 60).into_string().matches("rel=").count(), 2);
    }
}
