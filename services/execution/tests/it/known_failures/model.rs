//! Mutes, compared with a brute-force model: every decision is derived again from a plain list of what was
//! known at that time.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use anyhow::{Result, ensure};
use assay_proto::{
    ResultChange,
    execution::{
        CreateKnownFailureInput, DeleteKnownFailureRequest, Execution, KnownFailureInput,
        MuteInput, ReviewInput, TestReportEntry, UpdateKnownFailureRequest,
    },
};
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use super::{accepted, create, in_days, known, review, reviewer};
use crate::{
    changes::{open, reports, summary},
    judgement::verdict,
    world::World,
};

/// Number of histories to try.
const HISTORIES: u32 = 24;

const CASES: [&str; 4] = ["a", "b", "c", "d"];

/// The causes, which are also the texts of failures.
const CAUSES: [&str; 3] = ["lost", "slow", "torn"];

/// A cause, and the test case for which it is known; every one if there is none.
type Known = (usize, Option<usize>);

/// The attempts of a variant of a test case: the causes of those that fail.
type Attempts = Vec<Option<usize>>;

/// The variants of each test case that an execution runs.
type Results = BTreeMap<(usize, usize), Attempts>;

#[derive(Clone, Debug)]
enum Step {
    Run(Results),
    /// A run in two requests. In between, the end of a known failure is set.
    RunInTwo {
        first: Results,
        known: usize,
        days: i64,
        rest: Results,
    },
    Create(Known),
    /// Sets the end of a known failure.
    Move {
        known: usize,
        days: i64,
    },
    Delete {
        known: usize,
    },
    Review {
        execution: usize,
        cause: usize,
        every_case: bool,
    },
}

/// Results of these variants.
fn results(variants: Range<usize>) -> impl Strategy<Value = Results> {
    let attempt = prop::option::weighted(0.7, 0..CAUSES.len());
    btree_map((0..CASES.len(), variants), vec(attempt, 1..3), 1..8)
}

fn step() -> impl Strategy<Value = Step> {
    let days = || prop::sample::select(vec![-1, 1, 30]);
    let known = (0..CAUSES.len(), prop::option::of(0..CASES.len()));
    prop_oneof![
        5 => results(0..3).prop_map(Step::Run),
        3 => (results(0..2), 0..3_usize, days(), results(2..4))
            .prop_map(|(first, known, days, rest)| Step::RunInTwo { first, known, days, rest }),
        4 => known.prop_map(Step::Create),
        2 => (0..6_usize, days())
            .prop_map(|(known, days)| Step::Move { known, days }),
        1 => (0..6_usize).prop_map(|known| Step::Delete { known }),
        2 => (0..6_usize, 0..CAUSES.len(), any::<bool>())
            .prop_map(|(execution, cause, every_case)| Step::Review {
                execution, cause, every_case
            }),
    ]
}

/// The expectation of a reader of the documents.
#[derive(Default)]
struct Model {
    /// Whether each known failure is in force, the newest last.
    known: Vec<(Known, bool)>,
    /// The causes that were seen, with their test cases.
    seen: BTreeSet<(usize, usize)>,
    /// The failing test cases of each execution.
    executions: Vec<BTreeMap<usize, Failing>>,
}

/// A failing test case: the causes of its variants, and the variants whose failures are muted.
#[derive(Default)]
struct Failing {
    causes: BTreeMap<usize, usize>,
    muted: BTreeSet<usize>,
}

impl Failing {
    fn is_muted(&self) -> bool {
        self.causes.keys().all(|variant| self.muted.contains(variant))
    }
}

impl Model {
    fn is_known(&self, cause: usize, test: usize) -> bool {
        let covers = |known: &Known| known.0 == cause && known.1.is_none_or(|one| one == test);
        self.known.iter().any(|(known, in_force)| *in_force && covers(known))
    }

    /// Adds results to the last execution. Failures that are muted at this moment stay muted.
    fn report(&mut self, results: &Results) {
        let mut last = self.executions.pop().unwrap_or_default();
        for ((case, variant), attempts) in results {
            // The last attempt decides.
            if let Some(Some(cause)) = attempts.last() {
                last.entry(*case).or_default().causes.insert(*variant, *cause);
                self.seen.insert((*cause, *case));
            }
        }
        for (case, _) in results.keys() {
            if let Some(failing) = last.get_mut(case) {
                self.mute(*case, failing);
            }
        }
        self.executions.push(last);
    }

    fn mute(&self, case: usize, failing: &mut Failing) {
        let known = failing.causes.iter().filter(|(_, cause)| self.is_known(**cause, case));
        let known: Vec<_> = known.map(|(variant, _)| *variant).collect();
        failing.muted.extend(known);
    }

    fn review(&mut self, execution: usize, cause: usize, every_case: bool) {
        let with_cause: Vec<usize> = self.executions[execution]
            .iter()
            .filter(|(_, failing)| failing.causes.values().any(|one| *one == cause))
            .map(|(case, _)| *case)
            .collect();
        for case in &with_cause {
            let sought = (cause, (!every_case).then_some(*case));
            match self.known.iter_mut().find(|(known, _)| *known == sought) {
                Some((_, in_force)) => *in_force = true,
                None => self.known.push((sought, true)),
            }
        }
        for case in with_cause {
            let mut failing = self.executions[execution].remove(&case).unwrap_or_default();
            self.mute(case, &mut failing);
            self.executions[execution].insert(case, failing);
        }
    }
}

/// The service beside its model.
struct Compared {
    world: World,
    model: Model,
    executions: Vec<Execution>,
    fingerprints: BTreeMap<usize, String>,
    cases: BTreeMap<usize, String>,
}

impl Compared {
    async fn perform(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Run(results) => self.run(results, None).await,
            Step::RunInTwo { first, known, days, rest } => {
                self.run(first, Some((*known, *days, rest))).await
            }
            Step::Create(known) => self.create(*known).await,
            Step::Move { known, days } => self.end(*known, *days).await,
            Step::Delete { known } => self.delete(*known).await,
            Step::Review { execution, cause, every_case } => {
                self.review(*execution, *cause, *every_case).await
            }
        }
    }

    /// Runs results, and then others after the end of a known failure was set.
    async fn run(&mut self, results: &Results, then: Option<(usize, i64, &Results)>) -> Result<()> {
        let execution = open(&self.world, "main").await?;
        self.model.executions.push(BTreeMap::new());
        self.report(&execution, results).await?;
        if let Some((known, days, rest)) = then {
            self.end(known, days).await?;
            self.report(&execution, rest).await?;
        }
        let execution = self.world.complete(&execution.id).await?;
        for entry in reports(&self.world, &execution).await? {
            let case = CASES.iter().position(|case| *case == entry.test_case_identifier);
            self.cases.insert(case.unwrap(), entry.test_case_id);
        }
        let causes: Vec<(String, String)> =
            sqlx::query_as("select distinct headline, encode(fingerprint, 'hex') from failure")
                .fetch_all(&self.world.db)
                .await?;
        for (headline, fingerprint) in causes {
            let cause = CAUSES.iter().position(|cause| *cause == headline);
            self.fingerprints.insert(cause.unwrap(), fingerprint);
        }
        self.executions.push(execution);
        Ok(())
    }

    async fn report(&mut self, execution: &Execution, results: &Results) -> Result<()> {
        let sent: Vec<Value> = results.iter().flat_map(sent).collect();
        self.world.report(&execution.id, json!(sent)).await?;
        self.model.report(results);
        Ok(())
    }

    async fn create(&mut self, (cause, test): Known) -> Result<()> {
        let model = &mut self.model;
        let is_seen =
            |seen: &(usize, usize)| seen.0 == cause && test.is_none_or(|one| one == seen.1);
        let exists = model.known.iter().any(|(known, _)| *known == (cause, test));
        if exists || !model.seen.iter().any(is_seen) {
            return Ok(());
        }
        let input = CreateKnownFailureInput {
            fingerprint: self.fingerprints[&cause].clone(),
            test_case_id: test.map(|test| self.cases[&test].clone()),
            every_case: test.is_none(),
            muted_until: Some(in_days(30)),
            ..Default::default()
        };
        create(&self.world, input).await?;
        model.known.push(((cause, test), true));
        Ok(())
    }

    /// Returns the id and the version of a known failure.
    async fn stored(&self, (cause, test): Known) -> Result<(String, String)> {
        let is_sought = |fingerprint: &str, of: Option<&String>| {
            fingerprint == self.fingerprints[&cause] && of == test.map(|test| &self.cases[&test])
        };
        let mut all = known(&self.world).await?.into_iter();
        let one = all.find(|one| is_sought(&one.fingerprint, one.test_case_id.as_ref())).unwrap();
        Ok((one.id, one.data_version))
    }

    async fn end(&mut self, nr: usize, days: i64) -> Result<()> {
        let Some((known, _)) = self.model.known.get(nr).copied() else { return Ok(()) };
        let (id, version) = self.stored(known).await?;
        let until = Some(in_days(days));
        let request = UpdateKnownFailureRequest {
            project_id: self.world.project.clone(),
            id,
            data_version: Some(version),
            changes: Some(KnownFailureInput { muted_until: until, ..Default::default() }),
            fields: vec!["MutedUntil".to_owned()],
        };
        let request = reviewer(&self.world).await.call(request);
        self.world.known_failures().update_known_failure(request).await?;
        self.model.known[nr].1 = days > 0;
        Ok(())
    }

    async fn delete(&mut self, nr: usize) -> Result<()> {
        let Some((known, _)) = self.model.known.get(nr).copied() else { return Ok(()) };
        let (id, _) = self.stored(known).await?;
        let request = DeleteKnownFailureRequest { project_id: self.world.project.clone(), id };
        let request = reviewer(&self.world).await.call(request);
        self.world.known_failures().delete_known_failure(request).await?;
        self.model.known.remove(nr);
        Ok(())
    }

    async fn review(&mut self, execution: usize, cause: usize, every_case: bool) -> Result<()> {
        let (Some(stored), Some(fingerprint)) =
            (self.executions.get(execution), self.fingerprints.get(&cause))
        else {
            return Ok(());
        };
        let input = ReviewInput {
            fingerprint: Some(fingerprint.clone()),
            known: Some(MuteInput { every_case, muted_until: Some(in_days(7)) }),
            ..accepted()
        };
        review(&self.world, stored, input).await?;
        self.model.review(execution, cause, every_case);
        Ok(())
    }

    /// Compares the reports, the counts and the verdict of every execution.
    async fn compare(&self) -> Result<()> {
        for (execution, expected) in self.executions.iter().zip(&self.model.executions) {
            let entries = reports(&self.world, execution).await?;
            let muted = |entry: &&TestReportEntry| entry.is_muted;
            let shown: Vec<&str> = entries
                .iter()
                .filter(muted)
                .map(|entry| entry.test_case_identifier.as_str())
                .collect();
            let mut expected: Vec<&str> = expected
                .iter()
                .filter(|(_, failing)| failing.is_muted())
                .map(|(case, _)| CASES[*case])
                .collect();
            let mut sorted = shown.clone();
            sorted.sort_unstable();
            expected.sort_unstable();
            ensure!(sorted == expected, "muted are {sorted:?} instead of {expected:?}");
            let counts = summary(&self.world, execution).await?.changes.unwrap();
            ensure!(usize::try_from(counts.muted)? == expected.len(), "{counts:?}");
            let new = entries.iter().filter(|entry| {
                matches!(entry.change(), ResultChange::New | ResultChange::CauseChanged)
                    && !expected.contains(&entry.test_case_identifier.as_str())
            });
            let verdict = verdict(&self.world, execution).await?;
            let rule = verdict.rules.iter().find(|rule| rule.rule == "NewFailures").unwrap();
            ensure!(rule.is_met == (new.count() == 0), "{rule:?}");
        }
        ensure!(self.world.differences().await? == 0, "verify finds differences");
        ensure!(assay_execution::rebuild(&self.world.db).await? == 0, "rebuild changed something");
        Ok(())
    }
}

/// Returns the attempts of a variant as clients send them.
fn sent(((case, variant), attempts): (&(usize, usize), &Attempts)) -> Vec<Value> {
    let attempt = |(nr, cause): (usize, &Option<usize>)| {
        let result = if cause.is_some() { "Failed" } else { "Passed" };
        let mut sent = json!({
            "Identifier": CASES[*case], "Variant": format!("v{variant}"), "Attempt": nr + 1,
            "Result": result,
        });
        if let Some(cause) = cause {
            let step = json!({ "StepNr": 1, "Result": result, "ActualResult": CAUSES[*cause] });
            sent["Steps"] = json!([step]);
        }
        sent
    };
    attempts.iter().enumerate().map(attempt).collect()
}

async fn compare(steps: &[Step]) -> Result<()> {
    let mut compared = Compared {
        world: World::new().await?,
        model: Model::default(),
        executions: Vec::new(),
        fingerprints: BTreeMap::new(),
        cases: BTreeMap::new(),
    };
    for step in steps {
        compared.perform(step).await?;
    }
    compared.compare().await
}

#[test]
fn mutes_agree_with_a_brute_force_model() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = Config {
        cases: HISTORIES,
        failure_persistence: None,
        max_shrink_iters: 60,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&vec(step(), 5..25), |steps| {
            let done = runtime.block_on(compare(&steps));
            done.map_err(|error| TestCaseError::fail(format!("{error:#}")))
        })
        .unwrap();
}
