//! The judgement that a user has entered, and its way to the interface.

use http::Method;
use serde::{Deserialize, Serialize};

use crate::{api::Api, failure::Failure};

/// The fields of the form.
#[derive(Default)]
pub(in crate::page) struct Entry {
    pub(in crate::page) reports: Vec<String>,
    pub(super) fingerprint: Option<String>,
    status: String,
    pub(super) comment: Option<String>,
    pub(super) ticket: Option<String>,
    pub(super) until: Option<String>,
    pub(super) every_case: bool,
    /// The reason why it was refused.
    pub(super) problem: Option<String>,
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
                "fingerprint" => entry.fingerprint = Some(value),
                "status" => entry.status = value,
                "comment" => entry.comment = Some(value),
                "ticket" => entry.ticket = Some(value),
                "until" => entry.until = Some(value),
                "every" => entry.every_case = true,
                _ => {}
            }
        }
        entry
    }

    /// Sends the judgement of reports of the execution at this path. Returns the entry with the
    /// reason if it is refused.
    pub(in crate::page) async fn send(
        mut self,
        api: &Api,
        execution: &str,
    ) -> Result<Result<Reviewed, Self>, Failure> {
        self.problem = self.missing().map(str::to_owned);
        if self.problem.is_some() {
            return Ok(Err(self));
        }
        let path = format!("{execution}/reviews");
        match api.send::<Reviewed>(Method::PUT, &path, &self.review()).await {
            Ok(reviewed) => Ok(Ok(reviewed)),
            Err(failure) => {
                self.problem = Some(failure.of_input()?);
                Ok(Err(self))
            }
        }
    }

    /// Returns what is not filled in.
    fn missing(&self) -> Option<&'static str> {
        if self.reports.is_empty() && self.fingerprint.is_none() {
            return Some("Select at least one test.");
        }
        let is_endless = self.every_case && self.until.is_none();
        is_endless.then_some("Choose the day until which every test is muted.")
    }

    fn review(&self) -> Review<'_> {
        let Self { reports, fingerprint, status, comment, ticket, until, every_case, .. } = self;
        let known = until
            .as_ref()
            .map(|day| Mute { every_case: *every_case, muted_until: format!("{day}T00:00:00Z") });
        Review {
            // The interface takes one kind of selection.
            reports: if fingerprint.is_some() { &[] } else { reports },
            fingerprint: fingerprint.as_deref(),
            status,
            comment: comment.as_deref(),
            ticket: ticket.as_deref(),
            known,
        }
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
        serde_json::to_string(&entry(pairs).review()).unwrap()
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
