//! The judgement that a user has entered, and its way to the interface.

use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use crate::{api::Api, failure::Failure, record::Report, text::clean};

/// The fields of the form.
#[derive(Default)]
pub(in crate::page) struct Entry {
    pub(in crate::page) reports: Vec<String>,
    pub(super) fingerprint: Option<String>,
    /// The test reports that the page has shown, with their versions.
    seen: Vec<String>,
    pub(super) status: String,
    pub(super) comment: Option<String>,
    pub(super) ticket: Option<String>,
    pub(super) until: Option<String>,
    pub(super) every_case: bool,
    /// Whether empty texts are part of the judgement, and not only absent.
    is_whole: bool,
    /// The reason why it was refused.
    pub(super) problem: Option<String>,
    /// Whether it was refused because of another judgement.
    pub(super) is_conflict: bool,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Review<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reports: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<&'a str>,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<Mute>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seen: Vec<Seen<'a>>,
}

/// A test report as the page has shown it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Seen<'a> {
    id: &'a str,
    data_version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Mute {
    every_case: bool,
    muted_until: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(in crate::page) struct Reviewed {
    reviewed: i64,
    known_failures: i64,
}

impl Entry {
    /// Reads the fields, of which `report` may be there several times. Empty ones are absent.
    pub(in crate::page) fn read(pairs: Vec<(String, String)>) -> Self {
        let mut entry = Self::default();
        for (name, value) in pairs.into_iter().filter(|(_, value)| !value.trim().is_empty()) {
            match name.as_str() {
                "report" => entry.reports.push(value),
                "seen" => entry.seen.push(value),
                "whole" => entry.is_whole = true,
                "fingerprint" => entry.fingerprint = Some(value),
                "status" => entry.status = value,
                // Forms separate lines by both characters.
                "comment" => entry.comment = Some(value.replace("\r\n", "\n")),
                "ticket" => entry.ticket = Some(value),
                "until" => entry.until = Some(value),
                "every" => entry.every_case = true,
                _ => {}
            }
        }
        entry
    }

    /// Returns the judgement that a test has, to be changed.
    pub(in crate::page) fn of(report: &Report) -> Self {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let comment = given(report.comment.as_deref().unwrap_or_default());
        Self { comment, ticket: given(&report.ticket), ..Self::default() }
    }

    /// Sends the judgement of reports of the execution at this path, or of one report, whose texts
    /// the form has shown. Returns the entry with the reason if it is refused.
    pub(in crate::page) async fn send(
        mut self,
        api: &Api,
        execution: &str,
        report: Option<&Report>,
    ) -> Result<Result<Reviewed, Self>, Failure> {
        self.problem = self.missing().map(str::to_owned);
        if self.problem.is_some() {
            return Ok(Err(self));
        }
        let path = format!("{execution}/reviews");
        let refused = match api.send(Method::PUT, &path, &self.review(report)).await {
            Ok(reviewed) => return Ok(Ok(reviewed)),
            Err(failure) => failure.of_conflict(),
        };
        self.is_conflict = refused.is_ok();
        self.problem = Some(refused.or_else(Failure::of_input)?);
        Ok(Err(self))
    }

    /// Returns the status of the page that shows a refused judgement.
    pub(in crate::page) fn refusal(&self) -> StatusCode {
        if self.is_conflict { StatusCode::CONFLICT } else { StatusCode::UNPROCESSABLE_ENTITY }
    }

    /// Returns what is not filled in.
    fn missing(&self) -> Option<&'static str> {
        if self.reports.is_empty() && self.fingerprint.is_none() {
            return Some("Select at least one test.");
        }
        let is_endless = self.every_case && self.until.is_none();
        is_endless.then_some("Choose the day until which every test is muted.")
    }

    fn review(&self, report: Option<&Report>) -> Review<'_> {
        let Self { reports, fingerprint, status, until, every_case, .. } = self;
        let known = until
            .as_ref()
            .map(|day| Mute { every_case: *every_case, muted_until: format!("{day}T00:00:00Z") });
        let comment = report.map(|report| report.comment.as_deref().unwrap_or_default());
        let ticket = report.map(|report| report.ticket.as_str());
        let seen = self.seen.iter().filter_map(|seen| seen.rsplit_once('.'));
        Review {
            // The interface takes one kind of selection.
            reports: if fingerprint.is_some() { &[] } else { reports },
            fingerprint: fingerprint.as_deref(),
            status,
            comment: self.text(self.comment.as_deref(), comment),
            ticket: self.text(self.ticket.as_deref(), ticket),
            known,
            seen: seen.map(|(id, data_version)| Seen { id, data_version }).collect(),
        }
    }

    /// Returns a text to store, none to keep what there is. A text that was shown without some of its
    /// characters is kept unless it was changed.
    fn text<'a>(&self, entered: Option<&'a str>, shown: Option<&str>) -> Option<&'a str> {
        if !self.is_whole {
            return entered;
        }
        let entered = entered.unwrap_or_default();
        Some(entered).filter(|_| shown.is_none_or(|shown| clean(shown) != entered))
    }
}

impl Reviewed {
    /// Returns the address of a page that announces the review.
    pub(in crate::page) fn announced_on(&self, page: &str) -> String {
        let separator = if page.contains('?') { '&' } else { '?' };
        let Self { reviewed, known_failures } = self;
        format!("{page}{separator}reviewed={reviewed}&muted={known_failures}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(pairs: &[(&str, &str)]) -> Entry {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Entry::read(pairs.collect())
    }

    fn review_of(pairs: &[(&str, &str)]) -> String {
        serde_json::to_string(&entry(pairs).review(None)).unwrap()
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
        let expected = r#"{"Fingerprint":"ab","Status":"Accepted","Ticket":"SHOP-1","Known":{"EveryCase":false,"MutedUntil":"2026-12-24T00:00:00Z"}}"#;
        assert_eq!(review_of(&pairs), expected);
        let every = review_of(&[&pairs[..], &[("every", "true")]].concat());
        assert_eq!(every, expected.replace("false", "true"));
    }

    #[test]
    fn a_whole_judgement_replaces_texts_and_names_the_versions_it_has_seen() {
        let pairs = [("report", "1"), ("seen", "1.7"), ("status", "Accepted"), ("whole", "true")];
        let expected = r#"{"Reports":["1"],"Status":"Accepted","Comment":"","Ticket":"","Seen":[{"Id":"1","DataVersion":"7"}]}"#;
        assert_eq!(review_of(&pairs), expected);
        let whole = |comment| entry(&[&pairs[..], &[("comment", comment)]].concat());
        assert_eq!(whole("a\r\nb").text(Some("a\nb"), Some("a\r\nb")), None, "it is unchanged");
        assert_eq!(whole("a\r\nb").comment.as_deref(), Some("a\nb"));
        assert_eq!(whole("c").text(Some("c"), Some("b")), Some("c"));
        assert_eq!(whole("").text(None, Some("b")), Some(""));
    }

    #[test]
    fn a_selection_and_the_end_of_a_mute_are_needed() {
        assert_eq!(entry(&[("status", "Accepted")]).missing(), Some("Select at least one test."));
        let every = [("fingerprint", "ab"), ("every", "true")];
        assert!(entry(&every).missing().is_some());
        assert!(entry(&every[..1]).missing().is_none());
    }

    #[test]
    fn the_page_after_a_review_announces_it() {
        let done = Reviewed { reviewed: 2, known_failures: 0 };
        for (page, expected) in [
            ("/executions/1", "/executions/1?reviewed=2&muted=0"),
            ("/reports/1?from=a", "/reports/1?from=a&reviewed=2&muted=0"),
        ] {
            assert_eq!(done.announced_on(page), expected);
        }
    }
}
