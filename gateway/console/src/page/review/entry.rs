//! The judgement that a user has entered, and its way to the interface.

#[cfg(test)]
mod tests;

use http::{Method, StatusCode};
use serde::Serialize;

use super::reviewed::Reviewed;
use crate::{
    api::Api,
    failure::Failure,
    record::{Cause, Report, ReportEntry, ReportStatus},
    text::{clean, end_of_day},
};

/// The fields of the form.
#[derive(Default)]
pub(in crate::page) struct Entry {
    /// Ids of test reports, and fingerprints of causes.
    pub(in crate::page) selected: Vec<String>,
    reports: Vec<String>,
    causes: Vec<String>,
    /// Change of the test reports that causes select, and whether they are muted.
    change: Option<String>,
    muted: Option<bool>,
    /// Whether causes select only the test reports that need a review. By default, they select all.
    unreviewed: Option<bool>,
    /// The test reports and the causes that the page has shown, with their versions.
    seen: Vec<String>,
    seen_causes: Vec<String>,
    pub(super) status: String,
    pub(super) comment: Option<String>,
    pub(super) ticket: Option<String>,
    pub(super) until: Option<String>,
    /// Minutes by which UTC is ahead at the end of that day, if the browser says so.
    until_offset: Option<String>,
    pub(super) every_case: bool,
    /// Whether empty texts are part of the judgement, and not only absent.
    is_whole: bool,
    /// The reason why it was refused.
    pub(in crate::page) problem: Option<String>,
    /// Whether it was refused because of another judgement.
    pub(super) is_conflict: bool,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Review<'a> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    reports: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    causes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    muted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreviewed: Option<bool>,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<Mute>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seen: Vec<Seen<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    seen_causes: Vec<SeenCause<'a>>,
}

/// A test report as the page has shown it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Seen<'a> {
    id: &'a str,
    data_version: &'a str,
}

/// A cause as the page has shown it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SeenCause<'a> {
    fingerprint: &'a str,
    data_version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Mute {
    every_case: bool,
    muted_until: String,
}

/// The status of test reports that nobody has judged.
pub(super) const RESET: ReportStatus = ReportStatus::InReview;

impl Entry {
    /// Reads the fields, of which `report` may be there several times. Empty ones are absent.
    pub(in crate::page) fn read(pairs: Vec<(String, String)>) -> Self {
        let mut entry = Self::default();
        for (name, value) in pairs.into_iter().filter(|(_, value)| !value.trim().is_empty()) {
            match name.as_str() {
                "report" => entry.reports.push(value),
                "cause" => entry.causes.push(value),
                "seen" => entry.seen.push(value),
                "seenCause" => entry.seen_causes.push(value),
                "unreviewed" => entry.unreviewed = Some(true),
                "whole" => entry.is_whole = true,
                "status" => entry.status = value,
                // Forms separate lines by both characters.
                "comment" => entry.comment = Some(value.replace("\r\n", "\n")),
                "ticket" => entry.ticket = Some(value),
                "until" => entry.until = Some(value),
                "untilOffset" => entry.until_offset = Some(value),
                "every" => entry.every_case = true,
                _ => {}
            }
        }
        entry.selected = [&entry.reports[..], &entry.causes].concat();
        entry
    }

    /// Restricts causes to test reports with this change, muted or not.
    pub(in crate::page) fn among(self, change: Option<String>, muted: Option<String>) -> Self {
        let muted = muted.map(|muted| muted == "true");
        Self { change, muted, ..self }
    }

    /// Returns the judgement that a test has, to be changed.
    pub(in crate::page) fn of(report: &Report) -> Self {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let comment = given(report.comment.as_deref().unwrap_or_default());
        Self { comment, ticket: given(&report.ticket), ..Self::default() }
    }

    /// Returns the texts of an earlier judgement, to be judged alike.
    pub(in crate::page) fn like(before: Option<&ReportEntry>) -> Self {
        let Some(report) = before else { return Self::default() };
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
        let refused = match api.send::<Reviewed>(Method::PUT, &path, &self.review(report)).await {
            Ok(mut reviewed) => {
                reviewed.is_reset = self.status == RESET.name();
                return Ok(Ok(reviewed));
            }
            Err(failure) => failure.of_conflict(),
        };
        self.is_conflict = refused.is_ok();
        self.problem = Some(refused.or_else(Failure::of_input)?);
        Ok(Err(self))
    }

    /// Returns the version of a test report that a page sends with the judgement: the one that it shows. A judgement
    /// that was refused for its own contents keeps those that the user has seen, so that it replaces no other one.
    pub(in crate::page) fn seen(&self, id: &str, present: &str) -> String {
        self.kept(&self.seen, id, present)
    }

    /// Does the same for a cause.
    pub(in crate::page) fn seen_cause(&self, cause: &Cause) -> String {
        self.kept(&self.seen_causes, &cause.fingerprint, &cause.data_version)
    }

    fn kept(&self, seen: &[String], id: &str, present: &str) -> String {
        let is_kept = self.problem.is_some() && !self.is_conflict;
        let is_of = |seen: &&String| seen.rsplit_once('.').is_some_and(|(one, _)| one == id);
        let kept = seen.iter().find(is_of).filter(|_| is_kept);
        kept.cloned().unwrap_or_else(|| format!("{id}.{present}"))
    }

    /// Returns the status of the page that shows a refused judgement.
    pub(in crate::page) fn refusal(&self) -> StatusCode {
        if self.is_conflict { StatusCode::CONFLICT } else { StatusCode::UNPROCESSABLE_ENTITY }
    }

    /// Returns what is not filled in.
    fn missing(&self) -> Option<&'static str> {
        if self.selected.is_empty() {
            return Some("Select at least one test.");
        }
        let is_day = |day: &str| end_of_day(day, self.until_offset.as_deref()).is_some();
        if self.until.as_deref().is_some_and(|day| !is_day(day)) {
            return Some("Enter the day until which failures are muted as yyyy-mm-dd.");
        }
        let is_endless = self.every_case && self.until.is_none();
        is_endless.then_some("Choose the day until which every test is muted.")
    }

    fn review(&self, report: Option<&Report>) -> Review<'_> {
        let end = self.until.as_deref();
        let end = end.and_then(|day| end_of_day(day, self.until_offset.as_deref()));
        let known =
            end.map(|end| Mute { every_case: self.every_case, muted_until: end.to_rfc3339() });
        let comment = report.map(|report| report.comment.as_deref().unwrap_or_default());
        let ticket = report.map(|report| report.ticket.as_str());
        let seen = self.seen.iter().filter_map(|seen| seen.rsplit_once('.'));
        let seen_causes = self.seen_causes.iter().filter_map(|seen| seen.rsplit_once('.'));
        let has_causes = !self.causes.is_empty();
        Review {
            reports: &self.reports,
            causes: &self.causes,
            change: self.change.as_deref().filter(|_| has_causes),
            muted: self.muted.filter(|_| has_causes),
            unreviewed: self.unreviewed.filter(|_| has_causes),
            status: &self.status,
            comment: self.text(self.comment.as_deref(), comment),
            ticket: self.text(self.ticket.as_deref(), ticket),
            known,
            seen: seen.map(|(id, data_version)| Seen { id, data_version }).collect(),
            seen_causes: seen_causes
                .map(|(fingerprint, data_version)| SeenCause { fingerprint, data_version })
                .collect(),
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
