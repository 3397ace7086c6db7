//! The judgement of test reports: a form on the pages that list or show them.

mod entry;
mod form;
mod reviewed;
mod undo;

use maud::{Markup, html};
use serde::Deserialize;
use uuid::Uuid;

pub(super) use self::{
    entry::Entry,
    form::{FORM, Scope, form, may_review},
};
use crate::{
    claims::Claims,
    record::{Report, Review},
    text::{counted, plain, short_time},
};

/// The name of the last reviewer and the time of the review.
pub(super) fn reviewer(review: &Review) -> Markup {
    html! {
        @if let Some(name) = &review.reviewed_by { " by " bdi { (plain(name)) } }
        @if let Some(time) = review.review_time { ", " (short_time(time)) }
    }
}

/// A form that takes the last review of a test back, if that is possible.
pub(super) fn undo_last(report: &Report, user: &Claims, here: &str) -> Markup {
    html! {
        @if let Some(review) = report.review_id.as_deref().filter(|_| may_review(user)) {
            (undo::form(&report.execution_id, review, here))
        }
    }
}

/// The review or the walk that has led to a page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Announcement {
    reviewed: i64,
    reset: i64,
    newly_muted: i64,
    /// Id of the review.
    review: Option<String>,
    /// Whether a review was taken back.
    undone: Option<bool>,
    /// Id of the last test report of a list.
    pub(super) last: Option<String>,
}

impl Announcement {
    /// Announces on the page `here` what was done to test reports of an execution.
    pub(super) fn show(&self, execution: &str, here: &str) -> Markup {
        let review = self.review.as_deref().and_then(|review| review.parse::<Uuid>().ok());
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
            @if let Some(review) = review {
                (undo::form(execution, &review.to_string(), here))
            }
            @match self.undone {
                Some(true) => p.done #undone role="status" { "The review was taken back." },
                Some(false) => p.alert role="alert" {
                    "This review cannot be taken back: the tests have been judged, or have other results since."
                },
                None => {},
            }
        }
    }
}
