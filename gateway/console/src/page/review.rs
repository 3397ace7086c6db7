//! The judgement of test reports: a form on the pages that list or show them.

mod entry;
mod form;

use maud::{Markup, html};
use serde::Deserialize;

pub(super) use self::{
    entry::Entry,
    form::{FORM, Scope, form, may_review},
};
use crate::{
    record::Review,
    text::{counted, plain, short_time},
};

/// Returns the version of a test report that a page shows, as its form sends it.
pub(super) fn seen(id: &str, version: &str) -> String {
    format!("{id}.{version}")
}

/// The name of the last reviewer and the time of the review.
pub(super) fn reviewer(review: &Review) -> Markup {
    html! {
        @if let Some(name) = &review.reviewed_by { " by " bdi { (plain(name)) } }
        @if let Some(time) = review.review_time { ", " (short_time(time)) }
    }
}

/// Returns whether a status is the judgement of a reviewer.
pub(super) fn is_judged(status: &str) -> bool {
    matches!(status, "Accepted" | "Rejected" | "Investigation")
}

/// The review or the walk that has led to a page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Announcement {
    reviewed: i64,
    reset: i64,
    newly_muted: i64,
    /// Id of the last test report of a list.
    pub(super) last: Option<String>,
}

impl Announcement {
    pub(super) fn show(&self) -> Markup {
        html! {
            @if self.reviewed > 0 {
                p.done #reviewed role="status" {
                    (counted(self.reviewed, "test")) " reviewed"
                    @if self.newly_muted > 0 { ", " (counted(self.newly_muted, "failure")) " muted" }
                    "."
                }
            }
            @if self.reset > 0 {
                p.done role="status" { (counted(self.reset, "test")) " to review again." }
            }
        }
    }
}
