//! The statement of a review of several test reports, and the selection of these reports.

use std::mem;

use assay_auth::Caller;
use assay_fingerprint::Fingerprint;
use assay_ledger::known_failure::rules::{check_end, check_ticket};
use assay_proto::{
    Fault, ReportStatus, ResultChange, TestReportId, TestResult, Timestamp, execution::ReviewInput,
    name_of,
};
use assay_records::Check;

use super::seen::{MOST_CAUSES, Seen};
use crate::test_report::rules::{is_review, require_permission};

/// Maximum number of reports that are selected by their ids.
const MOST_REPORTS: usize = 10_000;

/// The reports that are reviewed.
pub(super) enum Selection {
    /// Those with these ids, and those with these causes.
    Listed(Vec<TestReportId>, Causes),
    Result(TestResult),
}

impl Selection {
    /// Returns the causes that select reports.
    pub(super) fn causes(&self) -> &[Fingerprint] {
        match self {
            Self::Listed(_, causes) => &causes.fingerprints,
            Self::Result(_) => &[],
        }
    }
}

/// Causes that select reports, of all changes or of one, muted or not, judged or not.
#[derive(Default)]
pub(super) struct Causes {
    pub(super) fingerprints: Vec<Fingerprint>,
    pub(super) change: Option<String>,
    pub(super) muted: Option<bool>,
    /// Whether only the reports are selected that need a review.
    pub(super) unreviewed: bool,
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
        let (seen, causes) = (mem::take(&mut input.seen), mem::take(&mut input.seen_causes));
        let seen = Seen::of(seen, causes, &mut check)?;
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

impl Causes {
    fn of(input: &ReviewInput, check: &mut Check) -> Self {
        if input.causes.len() > MOST_CAUSES {
            check.refuse("Causes", format!("must have at most {MOST_CAUSES} fingerprints"));
            return Self::default();
        }
        let fingerprints = input.causes.iter().map(|cause| cause.parse()).collect();
        let fingerprints = Result::unwrap_or_else(fingerprints, |_| {
            check.refuse("Causes", "must be fingerprints of failures");
            Vec::new()
        });
        let change = Some(input.change()).filter(|change| *change != ResultChange::Unspecified);
        let unreviewed = input.unreviewed.unwrap_or_default();
        Self { fingerprints, change: change.map(name_of), muted: input.muted, unreviewed }
    }

    /// The fingerprints as they are stored.
    pub(super) fn bytes(&self) -> Vec<&[u8]> {
        self.fingerprints.iter().map(|fingerprint| &fingerprint.as_bytes()[..]).collect()
    }
}

fn selection(input: &ReviewInput, check: &mut Check) -> Result<Option<Selection>, Fault> {
    let result = input.result.and_then(|result| TestResult::try_from(result).ok());
    let mut selections = Vec::new();
    if !input.reports.is_empty() || !input.causes.is_empty() {
        if input.reports.len() > MOST_REPORTS {
            check.refuse("Reports", format!("must have at most {MOST_REPORTS} ids"));
        }
        let ids = input.reports.iter().map(|id| TestReportId::from_field("Reports", id));
        let ids = check.read(ids.collect::<Result<Vec<_>, _>>())?;
        let causes = Causes::of(input, check);
        selections.push(Selection::Listed(ids.unwrap_or_default(), causes));
    }
    if let Some(fingerprint) = &input.fingerprint {
        match fingerprint.parse() {
            Ok(fingerprint) => {
                let causes = Causes { fingerprints: vec![fingerprint], ..Causes::default() };
                selections.push(Selection::Listed(Vec::new(), causes));
            }
            Err(_) => check.refuse("Fingerprint", "must be the fingerprint of a failure"),
        }
    }
    selections.extend(result.map(Selection::Result));
    if check.is_ok() && selections.len() != 1 {
        let rule = "must be given, or Causes, or Fingerprint, or Result, and only Reports and \
                    Causes together";
        check.refuse("Reports", rule);
    }
    Ok(selections.pop())
}
