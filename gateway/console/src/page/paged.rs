//! Lists that pages show part by part.

use maud::{Markup, html};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    api::{List, address},
    text::{counted, number},
};

/// The query of a page with a list: the filter, and the cursor of the part to show.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
pub(super) struct Paged<F> {
    #[serde(flatten)]
    pub(super) filter: F,
    #[serde(default, deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) cursor: Option<String>,
}

/// The query of a call that lists records.
#[derive(Serialize)]
pub(super) struct Listed<'a, F> {
    pub(super) limit: u32,
    #[serde(flatten)]
    pub(super) query: &'a Paged<F>,
}

impl<F: Clone + Serialize> Paged<F> {
    /// Returns the query of the part at a cursor.
    pub(super) fn at(&self, cursor: Option<String>) -> Self {
        Self { filter: self.filter.clone(), cursor }
    }

    /// Returns the query of a call that lists this part.
    pub(super) fn listed(&self, limit: u32) -> Listed<'_, F> {
        Listed { limit, query: self }
    }

    /// Says that a list is empty, or that a later part of it is: its records may have left the list since.
    pub(super) fn nothing(&self, text: &str) -> Markup {
        let is_later = self.cursor.is_some();
        html! { p.empty { (if is_later { "Nothing follows the pages before." } else { text }) } }
    }

    /// Links to the next part, and back to the first.
    pub(super) fn pager(&self, page: &str, next: Option<&str>) -> Markup {
        let link = |cursor: Option<&str>| address(page, &self.at(cursor.map(str::to_owned)));
        html! {
            @if self.cursor.is_some() || next.is_some() {
                nav.pager aria-label="Pages" {
                    @if self.cursor.is_some() { a.button href=(link(None)) { "« First page" } }
                    @if next.is_some() { a.button href=(link(next)) rel="next" { "Next page »" } }
                }
            }
        }
    }
}

/// Says how many of all records are shown, if it is not all of them. `noun` is what one of them is called.
pub(super) fn shown_of(shown: impl TryInto<i64>, all: impl TryInto<i64>, noun: &str) -> Markup {
    let (shown, all) = (count(shown), count(all));
    html! {
        @if shown < all { p.hint { "The first " (number(shown)) " of " (counted(all, noun)) " are shown." } }
    }
}

/// Says that only the first records of a list are shown, if it has more, and links to the page with all of them, if
/// there is one.
pub(super) fn cut<T>(list: &List<T>, noun: &str, all: Option<&str>) -> Markup {
    html! {
        @if list.next.is_some() {
            p.hint {
                "Only the first " (counted(count(list.items.len()), noun)) " are shown."
                @if let Some(all) = all { " " a href=(all) { "All " (noun) "s" } }
            }
        }
    }
}

fn count(records: impl TryInto<i64>) -> i64 {
    records.try_into().unwrap_or(i64::MAX)
}

/// Reads a query parameter; an empty one is absent, as fields of forms are.
pub(super) fn unless_empty<'de, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(input)?.filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default, Deserialize, Serialize)]
    #[serde(default)]
    struct Filter {
        #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
        q: Option<String>,
    }

    fn read<F: for<'de> Deserialize<'de>>(query: &str) -> Paged<F> {
        serde_urlencoded::from_str(query).unwrap()
    }

    #[test]
    fn pages_of_a_list_keep_its_filter() {
        let query = read::<Filter>("q=a+b&cursor=1&reviewed=2");
        assert_eq!(address("/api", &query.listed(5)), "/api?limit=5&q=a+b&cursor=1");
        let links = query.pager("/list", Some("2")).into_string();
        assert!(links.contains("\"/list?q=a+b\""), "{links}");
        assert!(links.contains("\"/list?q=a+b&amp;cursor=2\""), "{links}");
    }

    #[test]
    fn a_later_part_that_is_empty_does_not_say_that_the_list_is() {
        let shown = |query: &str| read::<Filter>(query).nothing("No failure.").into_string();
        assert_eq!(shown("q=a"), "<p class=\"empty\">No failure.</p>");
        assert_eq!(shown("cursor=1"), "<p class=\"empty\">Nothing follows the pages before.</p>");
    }

    #[test]
    fn a_list_of_which_a_part_is_shown_says_so() {
        let text = |html: Markup| html.into_string();
        assert_eq!(text(shown_of(100, 100, "execution")), "");
        let hint = "<p class=\"hint\">The first 100 of 1,250 executions are shown.</p>";
        assert_eq!(text(shown_of(100, 1250, "execution")), hint);
        let list = |next: Option<&str>| List { items: vec![(); 20], next: next.map(str::to_owned) };
        assert_eq!(text(cut(&list(None), "test set", Some("/sets"))), "");
        let hint = "<p class=\"hint\">Only the first 20 test sets are shown.</p>";
        assert_eq!(text(cut(&list(Some("1")), "test set", None)), hint);
        let linked = text(cut(&list(Some("1")), "test set", Some("/sets")));
        assert!(linked.contains("are shown. <a href=\"/sets\">All test sets</a>"), "{linked}");
    }

    #[test]
    fn a_list_without_a_filter_has_pages() {
        let query = read::<()>("cursor=");
        assert_eq!(address("/api", &query.listed(5)), "/api?limit=5");
        assert_eq!(query.pager("/list", None).into_string(), "");
    }
}
