//! The steps of a test that fails.

use assay_auth::Caller;
use assay_console::duration;
use assay_document::{Allowance, Failure, Listed, Step};
use assay_proto::{
    Page, TestResult,
    execution::{self, GetInstanceRequest, Instance, InstanceEntry, ListInstancesRequest},
};
use tokio::time::Instant;
use tonic::{Code, Status};

use super::{
    Documents,
    entry::Entry,
    facts::{self, outcome},
};
use crate::{list, problem::Problem};

/// Maximum number of tests with their steps.
pub(super) const MOST: usize = 100;

/// Maximum number of steps of a test, and of those before the first that failed.
const STEPS: usize = 20;
const BEFORE: usize = 5;

/// Maximum numbers of checks and pictures of a step.
const EXTRAS: usize = 5;

/// Maximum length of a text of a step, and of all texts of steps, in bytes.
const TEXT: usize = 4 << 10;
const TEXTS: usize = 2 << 20;

/// Number of instances of a test among which the first that fails is shown.
const INSTANCES: i32 = 100;

/// Maximum number of pictures, and of their bytes.
const PICTURES: usize = 40;
const PICTURE_BYTES: usize = 8 << 20;

/// Room that is left for steps and their pictures.
pub(super) struct Budget {
    texts: Allowance,
    deadline: Instant,
    pictures: usize,
    bytes: usize,
}

impl Budget {
    pub(super) fn until(deadline: Instant) -> Self {
        Self { texts: Allowance::new(TEXTS), deadline, pictures: 0, bytes: 0 }
    }

    /// Returns whether no further test fits.
    pub(super) fn is_spent(&self) -> bool {
        self.texts.is_spent() || Instant::now() >= self.deadline
    }

    /// Returns the size of the pictures, in bytes.
    pub(super) fn picture_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the size that the next picture may have, or why there is none.
    fn next_picture(&self) -> Result<usize, &'static str> {
        if Instant::now() >= self.deadline {
            return Err("reading the others took too long");
        }
        if self.pictures >= PICTURES {
            return Err("the document has 40 pictures already");
        }
        match PICTURE_BYTES - self.bytes {
            0 => Err("the document has 8 MiB of pictures already"),
            rest => Ok(rest.min(assay_document::LARGEST_PICTURE)),
        }
    }
}

impl Documents {
    /// Returns a test with the steps of its first instance that fails. The steps are missing if they have expired.
    pub(super) async fn failure(
        &mut self,
        caller: &Caller,
        project_id: &str,
        entry: Entry,
        budget: &mut Budget,
    ) -> Result<Failure, Problem> {
        let instance = match self.instance(caller, project_id, &entry).await {
            Err(status) if status.code() == Code::NotFound => None,
            instance => instance?,
        };
        let Instance { steps, variant, attempt, attempts, .. } = instance.unwrap_or_default();
        let variant = budget.texts.line(&variant, TEXT);
        let attempt = format!("attempt {attempt}");
        let instance = [variant.as_str(), if attempts.is_empty() { "" } else { &attempt }];
        let instance: Vec<_> = instance.into_iter().filter(|part| !part.is_empty()).collect();
        let instance = instance.join(", ");
        drop(attempts);

        let left_out = steps.len().saturating_sub(STEPS);
        let mut items = Vec::new();
        for step in shown(steps) {
            items.push(self.step(caller, step, budget).await);
        }
        let steps = Listed { items, left_out };
        let Entry { test, ticket, comment, .. } = entry;
        Ok(Failure { test, ticket, comment, instance, steps })
    }

    /// Returns the first instance of a test that fails, or else the first.
    async fn instance(
        &mut self,
        caller: &Caller,
        project_id: &str,
        entry: &Entry,
    ) -> Result<Option<Instance>, Status> {
        let Entry { test_case_id, test_plan_id, id, .. } = entry;
        let request = ListInstancesRequest {
            project_id: project_id.to_owned(),
            test_case_id: test_case_id.clone(),
            test_plan_id: test_plan_id.clone(),
            test_report_id: id.clone(),
            page: Some(Page { limit: Some(INSTANCES), ..Page::default() }),
        };
        let entries =
            list::of_page(self.reports.list_instances(caller.call(request)).await?).await?;
        let Some(chosen) = chosen(&entries) else { return Ok(None) };
        let request = GetInstanceRequest {
            project_id: project_id.to_owned(),
            test_case_id: test_case_id.clone(),
            test_plan_id: test_plan_id.clone(),
            test_report_id: id.clone(),
            id: chosen.id.clone(),
        };
        Ok(Some(self.reports.get_instance(caller.call(request)).await?.into_inner()))
    }

    async fn step(&mut self, caller: &Caller, step: execution::Step, budget: &mut Budget) -> Step {
        let result = outcome(step.result());
        let texts = &mut budget.texts;
        let mut shown = Step {
            number: step.step_nr,
            result,
            duration: took(&step),
            input: texts.text(&step.test_input, TEXT),
            expected: texts.text(&step.expected_result, TEXT),
            actual: texts.text(&step.actual_result, TEXT),
            checks: step
                .soft_verification
                .iter()
                .take(EXTRAS)
                .map(|check| texts.text(check, TEXT))
                .collect(),
            pictures: Vec::new(),
            left_out: Vec::new(),
        };
        let thumbnail = [step.thumbnail].into_iter().filter(|link| !link.is_empty());
        let links: Vec<String> =
            if step.screenshots.is_empty() { thumbnail.collect() } else { step.screenshots };
        for (index, link) in links.iter().enumerate() {
            if index >= EXTRAS {
                shown.left_out.push(format!("{} further ones of the step", links.len() - EXTRAS));
                break;
            }
            let picture = match budget.next_picture() {
                Ok(most) => self.picture(caller, link, most).await,
                Err(reason) => Err(reason.to_owned()),
            };
            match picture {
                Ok(picture) => {
                    budget.pictures += 1;
                    budget.bytes += picture.bytes();
                    shown.pictures.push(picture);
                }
                Err(reason) => {
                    let name = budget.texts.line(super::picture::name(link), 200);
                    shown.left_out.push(format!("{name} ({reason})"));
                }
            }
        }
        shown
    }
}

/// Returns how long a step has taken; empty if it did not run.
fn took(step: &execution::Step) -> String {
    let has_run = facts::shown(step.result()).has_run();
    if has_run { duration(step.duration_in_sec) } else { String::new() }
}

fn chosen(entries: &[InstanceEntry]) -> Option<&InstanceEntry> {
    let is_failure = |entry: &&InstanceEntry| is_failure(entry.result());
    entries.iter().find(is_failure).or_else(|| entries.first())
}

fn is_failure(result: TestResult) -> bool {
    matches!(result, TestResult::Failed | TestResult::Error | TestResult::Aborted)
}

/// Returns the steps around the first that failed, in their order.
fn shown(steps: Vec<execution::Step>) -> impl Iterator<Item = execution::Step> {
    let failed = steps.iter().position(|step| is_failure(step.result()));
    let start = failed.unwrap_or_default().saturating_sub(BEFORE);
    // The last steps are as many as others.
    let start = start.min(steps.len().saturating_sub(STEPS));
    steps.into_iter().skip(start).take(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_around_the_one_that_failed() {
        for (count, failed, expected) in [(500, 400, 395), (500, 0, 1), (500, 499, 481), (3, 2, 1)]
        {
            let step = |number| {
                let result = if number == failed { TestResult::Failed } else { TestResult::Passed };
                execution::Step { step_nr: number, result: result.into(), ..Default::default() }
            };
            let numbers: Vec<_> =
                shown((1..=count).map(step).collect()).map(|step| step.step_nr).collect();
            assert_eq!(numbers.first(), Some(&expected), "{count} {failed}");
            assert_eq!(numbers.len(), STEPS.min(usize::try_from(count).unwrap()));
        }
    }

    #[test]
    fn a_step_that_did_not_run_has_taken_no_time() {
        let took = |result: TestResult| {
            took(&execution::Step { result: result.into(), ..Default::default() })
        };
        assert_eq!(
            (took(TestResult::Canceled), took(TestResult::Passed)),
            (String::new(), "0 ms".into())
        );
    }

    #[test]
    fn pictures_are_bounded_in_number_and_bytes() {
        let later = Instant::now() + std::time::Duration::from_mins(1);
        let mut budget = Budget::until(later);
        assert_eq!(budget.next_picture(), Ok(assay_document::LARGEST_PICTURE));
        budget.bytes = PICTURE_BYTES - 10;
        assert_eq!(budget.next_picture(), Ok(10));
        budget.bytes = PICTURE_BYTES;
        assert!(budget.next_picture().is_err());
        assert!(Budget { pictures: PICTURES, ..Budget::until(later) }.next_picture().is_err());
        assert!(Budget::until(Instant::now()).next_picture().is_err());
    }
}
