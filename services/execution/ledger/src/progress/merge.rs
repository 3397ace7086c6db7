//! Results of the same instance: the last attempt decides, the others are kept.

use std::{collections::HashMap, sync::Arc};

use assay_proto::{Classification, InstanceId};

use super::{
    instance::{Attempt, NewInstance, Slot},
    report::TestReportState,
};

/// The number of an attempt that is only announced.
pub const ANNOUNCED: i32 = 0;

/// Maximum number of an attempt. Further attempts at an instance are not stored.
pub const MOST_ATTEMPTS: i32 = 100_000;

/// Maximum number of instances of a test case in an open execution.
pub const MOST_INSTANCES: i32 = 1000;

/// A result whose report is known.
#[derive(Debug)]
pub struct AssignedResult {
    /// The index of the report among the reports that are changed.
    pub report: usize,
    pub slot: Slot,
    pub classification: Option<Arc<Classification>>,
    pub attempt: Attempt,
}

/// An instance that is stored already.
#[derive(Debug)]
pub struct StoredInstance {
    /// The index of its report among the reports that are changed.
    pub report: usize,
    pub id: InstanceId,
    pub instance_nr: i32,
    pub reporter: String,
    pub variant: String,
    /// The numbers of its attempts, the last one first. Empty if it was only announced.
    pub attempts: Vec<i32>,
}

/// How results change the instances of reports.
#[derive(Debug, Default, PartialEq)]
pub struct Merged {
    /// New instances that are only announced.
    pub expected: Vec<NewInstance>,
    /// New instances.
    pub added: Vec<NewInstance>,
    /// Announced instances with their first attempts.
    pub announced: Vec<NewInstance>,
    /// Stored instances with another last attempt.
    pub retried: Vec<NewInstance>,
    /// Attempts before the last stored one, which arrive late. The last attempt is the latest of
    /// them.
    pub late: Vec<NewInstance>,
    /// The number of results that were not known.
    pub accepted: usize,
}

/// Gives reports the classifications of their results: those of the first one that has any.
pub fn classify(reports: &mut [TestReportState], results: &[AssignedResult]) {
    for result in results {
        let report = &mut reports[result.report];
        if report.classification.is_none()
            && let Some(classification) = &result.classification
        {
            report.classify(Arc::clone(classification));
        }
    }
}

/// Merges results into the stored instances that they are for. `highest` has the highest number of
/// an instance of each report; it grows with new instances that have no number of their own.
///
/// Of several results for the same attempt, the first one counts. If `continues`, attempts are
/// numbered from the last stored one.
pub fn merge(
    results: Vec<AssignedResult>,
    stored: Vec<StoredInstance>,
    highest: &mut [i32],
    continues: bool,
) -> Merged {
    let mut instances = Instances::with_capacity(stored.len() + results.len());
    for instance in stored {
        instances.add_stored(instance);
    }
    let mut accepted = 0;
    for result in results {
        accepted += usize::from(instances.add(result, highest, continues));
    }
    let added = Vec::with_capacity(instances.all.len());
    let mut merged = Merged { added, accepted, ..Merged::default() };
    for instance in instances.all {
        instance.into_merged(&mut merged);
    }
    merged
}

/// An instance while results are merged.
struct MergedInstance {
    id: InstanceId,
    report: usize,
    instance_nr: i32,
    reporter: String,
    variant: String,
    /// The numbers of the stored attempts, the last one first. `None` if the instance is new.
    stored: Option<Vec<i32>>,
    /// New attempts, in the order of their numbers.
    attempts: Vec<Attempt>,
}

struct Instances {
    all: Vec<MergedInstance>,
    by_number: HashMap<(usize, i32), usize>,
    by_name: HashMap<(usize, String, String), usize>,
}

impl Instances {
    fn with_capacity(count: usize) -> Self {
        let (by_number, by_name) = (HashMap::with_capacity(count), HashMap::with_capacity(count));
        Self { all: Vec::with_capacity(count), by_number, by_name }
    }

    fn add_stored(&mut self, stored: StoredInstance) {
        let StoredInstance { report, id, instance_nr, reporter, variant, attempts } = stored;
        let (stored, attempts) = (Some(attempts), Vec::new());
        self.push(MergedInstance { id, report, instance_nr, reporter, variant, stored, attempts });
    }

    fn push(&mut self, instance: MergedInstance) -> usize {
        let index = self.all.len();
        let MergedInstance { report, instance_nr, reporter, variant, .. } = &instance;
        self.by_number.insert((*report, *instance_nr), index);
        self.by_name.entry((*report, reporter.clone(), variant.clone())).or_insert(index);
        self.all.push(instance);
        index
    }

    /// Adds a result. Returns whether its attempt is new.
    fn add(&mut self, result: AssignedResult, highest: &mut [i32], continues: bool) -> bool {
        let AssignedResult { report, slot, mut attempt, .. } = result;
        let (known, number, (reporter, variant)) = match slot {
            Slot::Number(number) => {
                let known = self.by_number.get(&(report, number)).copied();
                (known, Some(number), Default::default())
            }
            Slot::Named { reporter, variant } => {
                let name = (report, reporter, variant);
                (self.by_name.get(&name).copied(), None, (name.1, name.2))
            }
        };
        let index = known.unwrap_or_else(|| {
            let instance_nr = number.unwrap_or(highest[report] + 1);
            highest[report] = highest[report].max(instance_nr);
            // Most instances have one attempt.
            let (id, stored, attempts) = (InstanceId::new(), None, Vec::with_capacity(1));
            self.push(MergedInstance {
                id,
                report,
                instance_nr,
                reporter,
                variant,
                stored,
                attempts,
            })
        });
        let instance = &mut self.all[index];
        if continues {
            attempt.number += instance.stored.iter().flatten().next().copied().unwrap_or_default();
        }
        instance.add(attempt)
    }
}

impl MergedInstance {
    fn add(&mut self, attempt: Attempt) -> bool {
        let number = attempt.number;
        if number > MOST_ATTEMPTS {
            return false;
        }
        let is_stored = match &self.stored {
            Some(attempts) => number == ANNOUNCED || attempts.contains(&number),
            None => number == ANNOUNCED && !self.attempts.is_empty(),
        };
        match self.attempts.binary_search_by_key(&number, |attempt| attempt.number) {
            Err(place) if !is_stored => {
                self.attempts.insert(place, attempt);
                true
            }
            _ => false,
        }
    }

    fn into_merged(self, merged: &mut Merged) {
        let Self { id, report, instance_nr, reporter, variant, stored, attempts } = self;
        let mut earlier = attempts;
        let Some(last) = earlier.pop() else { return };
        earlier.retain(|attempt| attempt.number != ANNOUNCED);
        let kind = match stored.as_deref() {
            None if last.number == ANNOUNCED => &mut merged.expected,
            None => &mut merged.added,
            Some([]) => &mut merged.announced,
            Some([newest, ..]) if last.number > *newest => &mut merged.retried,
            Some(_) => &mut merged.late,
        };
        kind.push(NewInstance { id, report, instance_nr, reporter, variant, last, earlier });
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::TestResult::{self, Failed, Passed};

    use super::*;
    use crate::progress::instance::Outcome;

    fn result(slot: Slot, number: i32, result: TestResult) -> AssignedResult {
        let outcome = Outcome { result, ..Outcome::default() };
        let attempt = Attempt { number, outcome, ..Attempt::default() };
        AssignedResult { report: 0, slot, classification: None, attempt }
    }

    fn named(variant: &str) -> Slot {
        Slot::Named { reporter: String::new(), variant: variant.to_owned() }
    }

    fn stored(instance_nr: i32, variant: &str, attempts: &[i32]) -> StoredInstance {
        StoredInstance {
            report: 0,
            id: InstanceId::new(),
            instance_nr,
            reporter: String::new(),
            variant: variant.to_owned(),
            attempts: attempts.to_vec(),
        }
    }

    /// Returns the number of each instance, that of its last attempt and those of earlier ones.
    fn numbers(instances: &[NewInstance]) -> Vec<(i32, i32, Vec<i32>)> {
        let earlier =
            |instance: &NewInstance| instance.earlier.iter().map(|one| one.number).collect();
        instances.iter().map(|one| (one.instance_nr, one.last.number, earlier(one))).collect()
    }

    #[test]
    fn instances_with_other_parameters_get_the_next_numbers() {
        let mut highest = [2];
        let results = vec![
            result(named("Project=firefox"), 1, Passed),
            result(named("Project=webkit"), 1, Failed),
            result(named("Project=firefox"), 1, Failed),
        ];
        let merged = merge(results, Vec::new(), &mut highest, false);
        assert_eq!(numbers(&merged.added), [(3, 1, vec![]), (4, 1, vec![])]);
        assert_eq!(merged.added[0].last.outcome.result, Passed, "the first result counts");
        assert_eq!((merged.accepted, highest), (2, [4]));
    }

    #[test]
    fn the_last_attempt_decides_in_whatever_order_attempts_arrive() {
        let results =
            [3, 1, 2, 3].map(|number| result(Slot::Number(1), number, TestResult::Failed));
        let merged = merge(results.into(), Vec::new(), &mut [0], false);
        assert_eq!(numbers(&merged.added), [(1, 3, vec![1, 2])]);
        assert_eq!(merged.accepted, 3);
    }

    #[test]
    fn announcements_are_replaced_by_results() {
        let results = vec![
            result(named("a"), ANNOUNCED, TestResult::NotExecuted),
            result(named("b"), ANNOUNCED, TestResult::NotExecuted),
            result(named("a"), 1, Passed),
            result(named("a"), ANNOUNCED, TestResult::NotExecuted),
            result(named("c"), ANNOUNCED, TestResult::NotExecuted),
        ];
        let merged = merge(results, vec![stored(1, "c", &[1])], &mut [1], false);
        assert_eq!(numbers(&merged.added), [(2, 1, vec![])]);
        assert_eq!(numbers(&merged.expected), [(3, ANNOUNCED, vec![])]);
        assert_eq!(merged.accepted, 3);
    }

    #[test]
    fn another_report_continues_the_attempts_of_the_last_one() {
        let results = vec![result(named("a"), 1, Failed), result(named("a"), 2, Passed)];
        let merged = merge(results, vec![stored(1, "a", &[2, 1])], &mut [1], true);
        assert_eq!(numbers(&merged.retried), [(1, 4, vec![3])]);
    }

    #[test]
    fn attempts_beyond_the_maximum_number_are_not_stored() {
        let results = vec![result(named("a"), 1, Failed), result(named("a"), 2, Passed)];
        let known = vec![stored(1, "a", &[MOST_ATTEMPTS - 1])];
        let merged = merge(results, known, &mut [1], true);
        assert_eq!(numbers(&merged.retried), [(1, MOST_ATTEMPTS, vec![])]);
        assert_eq!(merged.accepted, 1);
    }

    #[test]
    fn attempts_of_stored_instances_are_retries_or_late() {
        let results = vec![
            result(named("a"), 3, Passed),
            result(named("b"), 1, Failed),
            result(named("c"), 1, Passed),
            result(named("d"), 2, Passed),
        ];
        let known = vec![
            stored(1, "a", &[2, 1]),
            stored(2, "b", &[2]),
            stored(3, "c", &[]),
            stored(4, "d", &[2, 1]),
        ];
        let merged = merge(results, known, &mut [4], false);
        assert_eq!(numbers(&merged.retried), [(1, 3, vec![])]);
        assert_eq!(numbers(&merged.late), [(2, 1, vec![])]);
        assert_eq!(numbers(&merged.announced), [(3, 1, vec![])]);
        assert_eq!((merged.added.len(), merged.accepted), (0, 3));
    }
}
