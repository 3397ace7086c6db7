//! Classification of tests: what a page shows of it, and lists of the tests in the same place.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::{paged::unless_empty, part::text_field};
use crate::{
    api::address,
    record::{Classification, Label, RecordLink},
    text::{link, plain},
};

/// The tests that a list shows, in the parameters of the interface.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Place {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    suite: Option<String>,
}

impl Place {
    /// Whether the list shows tests anywhere.
    pub(super) fn is_anywhere(&self) -> bool {
        *self == Self::default()
    }

    /// Keeps the place in a form that does not show it.
    pub(super) fn hidden(&self) -> Markup {
        let fields = [("suite", &self.suite), ("tag", &self.tag), ("link", &self.link)];
        html! {
            @for (name, value) in fields {
                @if let Some(value) = value { input type="hidden" name=(name) value=(value); }
            }
        }
    }

    /// The fields of a filter.
    pub(super) fn fields(&self) -> Markup {
        html! {
            (text_field("suite", "Suite", self.suite.as_deref()))
            (text_field("tag", "Tag", self.tag.as_deref()))
            (text_field("link", "Link", self.link.as_deref()))
        }
    }
}

/// Shows where a test belongs. Each place leads to its tests in a list, such as that of the project.
pub(super) fn shown(classification: &Classification, list: &str) -> Markup {
    let Classification { suites, labels, links } = classification;
    let to = |place: Place| address(list, &place);
    // Links that tools report as labels are shown once.
    let is_link = |label: &&Label| {
        links.iter().any(|link| link.kind == label.name && link.target == label.value)
    };
    let in_suite = |name: &String| to(Place { suite: Some(name.clone()), ..Place::default() });
    html! {
        @if !suites.is_empty() {
            p.facts { span.fact aria-label="Suites" {
                @for (index, suite) in suites.iter().enumerate() {
                    @if index > 0 { " › " }
                    a href=(in_suite(suite)) { bdi { (plain(suite)) } }
                }
            } }
        }
        @if !labels.is_empty() || !links.is_empty() {
            p.facts {
                @for label in labels.iter().filter(|label| !is_link(label)) {
                    @let tag = tag(label);
                    a.badge.none href=(to(Place { tag: Some(tag.clone()), ..Place::default() })) {
                        bdi { (plain(&tag)) }
                    } " "
                }
                @for record in links { span.fact { (record_link(record)) } }
            }
        }
    }
}

/// Returns the text that finds tests with a label.
fn tag(label: &Label) -> String {
    let Label { name, value } = label;
    if name == "tag" { value.clone() } else { format!("{name}:{value}") }
}

fn record_link(record: &RecordLink) -> Markup {
    let RecordLink { kind, target } = record;
    html! {
        (plain(kind)) " "
        @if let Some(link) = link(target) {
            a href=(link.href()) rel="noreferrer" { bdi { (plain(link.file_name())) } }
        } @else { bdi { (plain(target)) } }
    }
}
