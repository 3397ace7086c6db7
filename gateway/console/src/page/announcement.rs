//! Results of a form, which the address of the page after it states.

use maud::{Markup, html};
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Announcement {
    saved: Option<String>,
    deleted: Option<String>,
}

impl Announcement {
    pub(super) fn show(&self) -> Markup {
        html! {
            @if self.saved.is_some() { p.done role="status" { "Saved." } }
            @if self.deleted.is_some() { p.done role="status" { "Deleted." } }
        }
    }
}
