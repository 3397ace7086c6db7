//! The versions of test reports that a reviewer has seen, and reviews that were made since.

use std::collections::HashMap;

use assay_fingerprint::Fingerprint;
use assay_proto::{
    Fault, TestReportId,
    execution::{SeenCause, SeenTestReport},
};
use assay_records::Check;

/// Maximum numbers of versions in a review, of reports and of causes.
const MOST_SEEN: usize = 10_000;
pub(super) const MOST_CAUSES: usize = 1000;

/// Maximum number of reports that an error names.
pub(super) const NAMED: usize = 3;

/// Maximum number of characters of a comment and of a name in an error.
const EXCERPT: usize = 200;

/// A locked report and its version.
#[derive(sqlx::FromRow)]
pub(super) struct Locked {
    pub(super) id: TestReportId,
    pub(super) revision: i64,
}

/// The judgement of a report.
#[derive(sqlx::FromRow)]
pub(super) struct Judgement {
    test_case_name: String,
    status: String,
    ticket: String,
    comment: String,
    reviewed_by: Option<String>,
}

/// The versions that a reviewer has seen, of test reports and of causes.
#[derive(Default)]
pub(super) struct Seen {
    reports: HashMap<TestReportId, String>,
    causes: Vec<(Fingerprint, String)>,
}

impl Seen {
    pub(super) fn of(
        reports: Vec<SeenTestReport>,
        causes: Vec<SeenCause>,
        check: &mut Check,
    ) -> Result<Self, Fault> {
        for (field, count, most) in
            [("Seen", reports.len(), MOST_SEEN), ("SeenCauses", causes.len(), MOST_CAUSES)]
        {
            if count > most {
                check.refuse(field, format!("must have at most {most} versions"));
                return Ok(Self::default());
            }
        }
        let reports = reports.into_iter().map(|SeenTestReport { id, data_version }| {
            Ok((TestReportId::from_field("Seen", &id)?, data_version))
        });
        let reports = check.read(reports.collect::<Result<_, Fault>>())?;
        let causes = causes.into_iter().map(|SeenCause { fingerprint, data_version }| {
            let cause = fingerprint.parse::<Fingerprint>();
            let rule = "must have fingerprints of failures";
            Ok((cause.map_err(|_| Fault::invalid("SeenCauses", rule))?, data_version))
        });
        let causes = check.read(causes.collect::<Result<_, Fault>>())?;
        Ok(Self { reports: reports.unwrap_or_default(), causes: causes.unwrap_or_default() })
    }

    /// Returns the versions of those of some causes that the reviewer has seen.
    pub(super) fn causes(&self, selected: &[Fingerprint]) -> Vec<(Fingerprint, String)> {
        let is_selected = |(cause, _): &&(Fingerprint, String)| selected.contains(cause);
        self.causes.iter().filter(is_selected).cloned().collect()
    }

    /// Returns the first of the reports that have changed since, and the number of all of them.
    pub(super) fn changed(&self, locked: &[Locked]) -> (Vec<TestReportId>, usize) {
        let is_changed = |report: &&Locked| {
            self.reports.get(&report.id).is_some_and(|seen| *seen != report.revision.to_string())
        };
        let changed: Vec<_> = locked.iter().filter(is_changed).map(|report| report.id).collect();
        (changed.iter().copied().take(NAMED).collect(), changed.len())
    }
}

/// The error that some reports have been reviewed since the reviewer read them: it states the
/// judgements of the first of them.
pub(super) fn reviewed_since(judgements: &[Judgement], count: usize) -> Fault {
    let mut stated: Vec<_> = judgements.iter().map(Judgement::stated).collect();
    if stated.is_empty() {
        stated.push("the judgement was taken back".to_owned());
    }
    let others = match count.saturating_sub(judgements.len()) {
        0 => String::new(),
        1 => "; and 1 other test report".to_owned(),
        others => format!("; and {others} other test reports"),
    };
    let reason = format!("changed since the given version: {}{others}", stated.join("; "));
    Fault::Conflict { code: "stale_data_version", reason }
}

impl Judgement {
    fn stated(&self) -> String {
        let reviewer = self.reviewed_by.as_deref().map(|name| format!(" by {}", excerpt(name)));
        let ticket = some(&self.ticket).map(|ticket| format!(", ticket {ticket}"));
        let comment = some(&self.comment).map(|text| format!(", comment “{}”", excerpt(text)));
        let begin = format!("“{}” is {}", excerpt(&self.test_case_name), self.status);
        [Some(begin), reviewer, ticket, comment].into_iter().flatten().collect()
    }
}

fn some(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn excerpt(text: &str) -> String {
    let mut excerpt: String = text.chars().take(EXCERPT).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(comment: &str) -> Judgement {
        Judgement {
            test_case_name: "pays by card".to_owned(),
            status: "Rejected".to_owned(),
            ticket: "SHOP-1".to_owned(),
            comment: comment.to_owned(),
            reviewed_by: Some("Grace".to_owned()),
        }
    }

    #[test]
    fn an_error_states_the_judgements_made_since() {
        let stated = "changed since the given version: “pays by card” is Rejected by Grace, \
                      ticket SHOP-1, comment “real bug”";
        assert_eq!(reviewed_since(&[judgement("real bug")], 1).to_string(), stated);
        let many = reviewed_since(&[judgement("real bug")], 3).to_string();
        assert_eq!(many, format!("{stated}; and 2 other test reports"));
        let undone = "changed since the given version: the judgement was taken back";
        assert_eq!(reviewed_since(&[], 0).to_string(), undone);
        let long = reviewed_since(&[judgement(&"ä".repeat(64 << 10))], 2).to_string();
        assert!(long.len() < 1000 && long.ends_with("ä…”; and 1 other test report"), "{long}");
    }
}
