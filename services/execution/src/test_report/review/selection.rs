//! The statement of a review of several test reports, and the selection of these reports.

use assay_auth::Caller;
use assay_fingerprint::Fingerprint;
use assay_ledger::known_failure::rules::{check_end, check_ticket};
use assay_proto::{
    Fault, ReportStatus, TestReportId, TestResult, Timestamp, execution::ReviewInput, name_of,
};
use assay_records::Check;

use super::seen::Seen;
use crate::test_report::rules::{is_review, require_permission};

/// Maximum number of reports that are selected by their ids.
const MOST_REPORTS: usize = 10_000;

/// The reports that are reviewed.
pub(super) enum Selection {
    Reports(Vec<TestReportId>),
    Cause(Fingerprint),
    Result(TestResult),
}

/// A review of several reports.
pub(super) struct Review {
    pub(super) selection: Selection,
    pub(super) status: ReportStatus,
    /// An empty text clears that of the reports, nothing keeps it. So does the ticket.
    pub(super) comment: Option<String>,
    pub(super) ticket: Option<String>,
    pub(super) mute: Option<Mute>,
    pub(super) seen: Seen,
}

/// How failures become known.
#[derive(Clone, Copy)]
pub(super) struct Mute {
    pub(super) every_case: bool,
    pub(super) until: Timestamp,
}

impl Review {
    /// Checks a review that a caller wants to make. Failures may be muted until the latest end.
    pub(super) fn of(
        caller: &Caller,
        mut input: ReviewInput,
        latest_end: Timestamp,
    ) -> Result<Self, Fault> {
        let mut check = Check::default();
        check.texts(&input);
        if !is_review(input.status()) {
            check.refuse("Status", "must be Accepted, Rejected, Investigation or InReview");
        }
        check_ticket(input.ticket.as_deref(), &mut check);
        let selection = selection(&input, &mut check)?;
        let seen = Seen::of(std::mem::take(&mut input.seen), &mut check)?;
        let mute = input.known.map(|known| Mute {
            every_case: known.every_case,
            until: check.within("Known", |check| check_end(known.muted_until, latest_end, check)),
        });
        check.done()?;
        require_permission(caller, input.status())?;
        if mute.is_some() {
            require_permission(caller, ReportStatus::Accepted)?;
        }
        Ok(Self {
            status: input.status(),
            comment: input.comment,
            ticket: input.ticket,
            selection: selection.ok_or_else(|| Fault::internal("a review selects nothing"))?,
            mute,
            seen,
        })
    }
}

impl Selection {
    /// The ids, fingerprint and result, of which one is present.
    pub(super) fn parts(&self) -> (Option<&[TestReportId]>, Option<&[u8]>, Option<String>) {
        match self {
            Self::Reports(ids) => (Some(ids), None, None),
            Self::Cause(fingerprint) => (None, Some(&fingerprint.as_bytes()[..]), None),
            Self::Result(result) => (None, None, Some(name_of(*result))),
        }
    }
}

fn selection(input: &ReviewInput, check: &mut Check) -> Result<Option<Selection>, Fault> {
    let result = input.result.and_then(|result| TestResult::try_from(result).ok());
    let mut selections = Vec::new();
    if !input.reports.is_empty() {
        if input.reports.len() > MOST_REPORTS {
            check.refuse("Reports", format!("must have at most {MOST_REPORTS} ids"));
        }
        let ids = input.reports.iter().map(|id| TestReportId::from_field("Reports", id));
        let ids = check.read(ids.collect::<Result<Vec<_>, _>>())?;
        selections.push(Selection::Reports(ids.unwrap_or_default()));
    }
    if let Some(fingerprint) = &input.fingerprint {
        match fingerprint.parse() {
            Ok(fingerprint) => selections.push(Selection::Cause(fingerprint)),
            Err(_) => check.refuse("Fingerprint", "must be the fingerprint of a failure"),
        }
    }
    selections.extend(result.map(Selection::Result));
    if check.is_ok() && selections.len() != 1 {
        check.refuse("Reports", "must be given, or Fingerprint, or Result, and only one of them");
    }
    Ok(selections.pop())
}
