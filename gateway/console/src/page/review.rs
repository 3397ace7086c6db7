//! `/executions/{executionId}/reviews`: the judgement of test reports.

use axum::{
    Form, Router,
    extract::Path,
    response::{IntoResponse, Redirect},
    routing::post,
};
use http::Method;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::execution::path;
use crate::{
    Console,
    failure::Failure,
    session::{Claims, Next, Session},
    text::counted,
};

/// Id of the form, to which the boxes of rows belong.
pub(super) const FORM: &str = "review";

/// The judgements: the status, the button, its key and the permission that it needs.
const JUDGEMENTS: [(&str, &str, &str, &[&str]); 3] = [
    ("Accepted", "Accept", "a", &["Accept"]),
    ("Rejected", "Reject", "r", &["Reject"]),
    ("Investigation", "Investigate", "i", &["Accept", "Reject"]),
];

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/executions/{execution}/reviews", post(review))
}

/// Returns whether a user can judge test reports.
pub(super) fn may_review(user: &Claims) -> bool {
    user.may("Accept") || user.may("Reject")
}

/// The test reports that a form is about.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    /// Those selected in the list.
    Selected,
    /// Those selected, or all with this cause.
    Cause(&'a str),
    /// This one.
    One(&'a str),
}

/// The form that judges test reports and returns to the page `next`.
pub(super) fn form(user: &Claims, execution: &str, next: &str, scope: Scope<'_>) -> Markup {
    let is_bulk = !matches!(scope, Scope::One(_));
    html! {
        @if may_review(user) {
            @if !is_bulk { h2 { "Review" } }
            form.review-form.bulk[is_bulk] id=(FORM) aria-label="Review" method="post" action=(format!("/executions/{execution}/reviews")) {
                input type="hidden" name="next" value=(next);
                (reports(scope))
                label.field.grow { span { "Comment" } input name="comment" maxlength="4000"; }
                label.field { span { "Ticket" } input name="ticket" maxlength="255"; }
                @if user.may("Accept") {
                    label.field {
                        span { "Mute until, at most 90 days" }
                        input type="date" name="until";
                    }
                }
                div.buttons { @for (status, label, key, permissions) in JUDGEMENTS {
                    @if permissions.iter().any(|permission| user.may(permission)) {
                        button name="status" value=(status) data-key=(key) { (label) }
                    }
                } }
            }
        }
    }
}

fn reports(scope: Scope<'_>) -> Markup {
    html! {
        @match scope {
            Scope::Selected => output #selected { "Selected tests" },
            Scope::One(id) => input type="hidden" name="report" value=(id);,
            Scope::Cause(fingerprint) => {
                label.field {
                    span { "Tests" }
                    select name="fingerprint" {
                        option value="" { "selected" }
                        option value=(fingerprint) { "all of this cause" }
                    }
                }
                output #selected {}
            }
        }
    }
}

/// The fields of the form.
#[derive(Default)]
struct Fields {
    reports: Vec<String>,
    fingerprint: Option<String>,
    status: String,
    comment: Option<String>,
    ticket: Option<String>,
    until: Option<String>,
    next: String,
}

impl Fields {
    /// Reads the fields, of which `report` may be there several times. Empty ones are absent.
    fn read(pairs: Vec<(String, String)>) -> Self {
        let mut fields = Self::default();
        for (name, value) in pairs.into_iter().filter(|(_, value)| !value.trim().is_empty()) {
            match name.as_str() {
                "report" => fields.reports.push(value),
                "fingerprint" => fields.fingerprint = Some(value),
                "status" => fields.status = value,
                "comment" => fields.comment = Some(value),
                "ticket" => fields.ticket = Some(value),
                "until" => fields.until = Some(value),
                "next" => fields.next = value,
                _ => {}
            }
        }
        fields
    }
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Review {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reports: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<Mute>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Mute {
    muted_until: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Reviewed {
    reviewed: i64,
    known_failures: i64,
}

impl From<Fields> for Review {
    fn from(fields: Fields) -> Self {
        let Fields { reports, fingerprint, status, comment, ticket, until, .. } = fields;
        // The interface takes one kind of selection.
        let reports = if fingerprint.is_some() { Vec::new() } else { reports };
        let known = until.map(|day| Mute { muted_until: format!("{day}T00:00:00Z") });
        Self { reports, fingerprint, status, comment, ticket, known }
    }
}

async fn review(
    Session { api, .. }: Session,
    Path(execution): Path<Uuid>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<impl IntoResponse, Failure> {
    let fields = Fields::read(pairs);
    if fields.reports.is_empty() && fields.fingerprint.is_none() {
        return Err(Failure::incomplete("Select at least one test."));
    }
    let next = Next::parse(&fields.next);
    let path = format!("{}/reviews", path(execution));
    let done = api.send::<Reviewed>(Method::PUT, &path, &Review::from(fields)).await?;
    Ok(Redirect::to(&done.announced_on(&next)))
}

impl Reviewed {
    /// Returns the address of a page that announces the review.
    fn announced_on(&self, next: &Next) -> String {
        let (page, mark) = next.as_str().split_once('#').unwrap_or((next.as_str(), ""));
        let separator = if page.contains('?') { '&' } else { '?' };
        let mark = if mark.is_empty() { String::new() } else { format!("#{mark}") };
        let Self { reviewed, known_failures } = self;
        format!("{page}{separator}reviewed={reviewed}&muted={known_failures}{mark}")
    }
}

/// The review that has led to a page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Announcement {
    reviewed: i64,
    muted: i64,
}

impl Announcement {
    pub(super) fn show(&self) -> Markup {
        html! {
            @if self.reviewed > 0 {
                p.done role="status" {
                    (counted(self.reviewed, "test")) " reviewed"
                    @if self.muted > 0 { ", " (counted(self.muted, "failure")) " muted" }
                    "."
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review_of(pairs: &[(&str, &str)]) -> String {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        serde_json::to_string(&Review::from(Fields::read(pairs.collect()))).unwrap()
    }

    #[test]
    fn empty_fields_are_left_out() {
        let pairs = [("report", "1"), ("report", "2"), ("status", "Accepted"), ("comment", " ")];
        assert_eq!(review_of(&pairs), r#"{"Reports":["1","2"],"Status":"Accepted"}"#);
    }

    #[test]
    fn a_cause_takes_the_place_of_selected_tests() {
        let pairs = [
            ("report", "1"),
            ("fingerprint", "ab"),
            ("status", "Accepted"),
            ("ticket", "SHOP-1"),
            ("until", "2026-12-24"),
        ];
        let expected = r#"{"Fingerprint":"ab","Status":"Accepted","Ticket":"SHOP-1","Known":{"MutedUntil":"2026-12-24T00:00:00Z"}}"#;
        assert_eq!(review_of(&pairs), expected);
    }

    #[test]
    fn the_page_after_a_review_announces_it() {
        let done = Reviewed { reviewed: 2, known_failures: 0 };
        for (next, expected) in [
            ("/executions/1", "/executions/1?reviewed=2&muted=0"),
            ("/reports/1?from=a#x", "/reports/1?from=a&reviewed=2&muted=0#x"),
            ("//evil.test", "/?reviewed=2&muted=0"),
        ] {
            assert_eq!(done.announced_on(&Next::parse(next)), expected);
        }
    }
}
