//! Lists that pages show part by part.

use maud::{Markup, html};
use serde::{Deserialize, Deserializer, Serialize};

use crate::api::address;

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
    fn a_list_without_a_filter_has_pages() {
        let query = read::<()>("cursor=");
        assert_eq!(address("/api", &query.listed(5)), "/api?limit=5");
        assert_eq!(query.pager("/list", None).into_string(), "");
    }
}
