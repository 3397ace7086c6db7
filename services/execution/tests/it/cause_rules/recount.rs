//! Causes that are joined and split, compared with a brute-force model: after each change, the causes and the mutes are
//! counted again from a plain list of what has failed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use assay_proto::execution::{
    CauseRule, CreateKnownFailureInput, Execution, ListFailuresRequest, ListTestReportsRequest,
};
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use super::{create, delete, derive, same};
use crate::{
    causes::failures,
    changes::{list_reports, reports, run, summary},
    known_failures::{create as make_known, in_days},
    world::World,
};

/// Number of histories to try.
const HISTORIES: u32 = 4;

const CASES: [&str; 4] = ["a", "b", "c", "d"];

/// The texts of failures, each of which is a cause while no rule joins it.
const TEXTS: [&str; 5] = ["lost", "slow", "torn", "bent", "worn"];

/// The text of each variant of a test case that fails in an execution.
type Failing = BTreeMap<(usize, usize), usize>;

#[derive(Clone, Debug)]
enum Step {
    Run(Failing),
    /// Makes the causes of two texts one.
    Join(usize, usize),
    /// Deletes a rule.
    Split(usize),
    /// Makes the cause of a text known for every test case.
    Mute(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let failing = btree_map((0..CASES.len(), 0..3_usize), 0..TEXTS.len(), 1..9);
    prop_oneof![
        3 => failing.prop_map(Step::Run),
        3 => (0..TEXTS.len(), 0..TEXTS.len()).prop_map(|(one, other)| Step::Join(one, other)),
        2 => (0..3_usize).prop_map(Step::Split),
        2 => (0..TEXTS.len()).prop_map(Step::Mute),
    ]
}

/// The number of test cases with a cause, that of its texts, and that of the test cases to review.
#[derive(Debug, Default)]
struct Count {
    cases: BTreeSet<usize>,
    texts: BTreeSet<usize>,
    unreviewed: BTreeSet<usize>,
}

/// The expectation of a reader of the documents.
#[derive(Default)]
struct Model {
    /// Texts that count as others.
    rules: Vec<(usize, usize)>,
    /// The causes that are known, by the texts that stand for them.
    known: BTreeSet<usize>,
    /// The texts of the failing test cases of each execution, and the test cases that were muted.
    executions: Vec<(Failing, BTreeSet<usize>)>,
}

impl Model {
    /// Returns the text that stands for the cause of a text.
    fn root(&self, text: usize) -> usize {
        let rule = self.rules.iter().find(|(one, _)| *one == text);
        rule.map_or(text, |(_, other)| self.root(*other))
    }

    fn run(&mut self, failing: &Failing) {
        let is_known = |text: &usize| self.known.contains(&self.root(*text));
        let cases: BTreeSet<usize> = failing.keys().map(|(case, _)| *case).collect();
        let texts_of = |case: usize| {
            failing.iter().filter(move |((one, _), _)| *one == case).map(|(_, text)| text)
        };
        let muted = cases.into_iter().filter(|case| texts_of(*case).all(is_known)).collect();
        self.executions.push((failing.clone(), muted));
    }

    fn join(&mut self, one: usize, other: usize) {
        self.rules.push((one, other));
        // Known failures follow to the cause that theirs becomes.
        if self.known.remove(&one) {
            self.known.insert(other);
        }
    }

    fn split(&mut self, rule: usize) {
        let (one, _) = self.rules[rule];
        let is_known = self.known.contains(&self.root(one));
        self.rules.remove(rule);
        // Each of the causes stays known.
        if is_known {
            self.known.insert(one);
        }
    }

    /// Counts the causes of an execution, of test cases that are muted or not, or of all.
    fn counts(&self, execution: usize, muted: Option<bool>) -> BTreeMap<usize, Count> {
        let (failing, muted_cases) = &self.executions[execution];
        let mut counts = BTreeMap::<usize, Count>::new();
        for ((case, _), text) in failing {
            let is_muted = muted_cases.contains(case);
            if muted.is_some_and(|muted| muted != is_muted) {
                continue;
            }
            let count = counts.entry(self.root(*text)).or_default();
            count.cases.insert(*case);
            count.texts.insert(*text);
            if !is_muted {
                count.unreviewed.insert(*case);
            }
        }
        counts
    }
}

/// The service beside its model.
struct Compared {
    world: World,
    model: Model,
    executions: Vec<Execution>,
    rules: Vec<CauseRule>,
    /// The fingerprint of each text without rules.
    fingerprints: Vec<String>,
}

impl Compared {
    /// Runs a test case for each text, so that every cause has failures.
    async fn new() -> Result<Self> {
        let world = World::new().await?;
        let mut compared = Self {
            world,
            model: Model::default(),
            executions: Vec::new(),
            rules: Vec::new(),
            fingerprints: Vec::new(),
        };
        let each: Failing =
            (0..TEXTS.len()).map(|text| ((text % CASES.len(), text), text)).collect();
        compared.run(&each).await?;
        let found: Vec<(String, String)> =
            sqlx::query_as("select distinct headline, encode(fingerprint, 'hex') from failure")
                .fetch_all(&compared.world.db)
                .await?;
        let of = |text: &&str| found.iter().find(|(headline, _)| headline == *text).unwrap();
        compared.fingerprints = TEXTS.iter().map(|text| of(text).1.clone()).collect();
        Ok(compared)
    }

    async fn perform(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Run(failing) => self.run(failing).await?,
            Step::Join(one, other) => {
                let (one, other) = (self.model.root(*one), self.model.root(*other));
                if one != other {
                    let rule = same(&self.fingerprints[one], &self.fingerprints[other]);
                    self.rules.push(create(&self.world, rule).await?);
                    self.model.join(one, other);
                }
            }
            Step::Split(rule) => {
                if *rule < self.rules.len() {
                    delete(&self.world, self.rules.remove(*rule)).await?;
                    self.model.split(*rule);
                }
            }
            Step::Mute(text) => self.mute(self.model.root(*text)).await?,
        }
        derive(&self.world).await
    }

    async fn run(&mut self, failing: &Failing) -> Result<()> {
        let sent = |((case, variant), text): (&(usize, usize), &usize)| {
            json!({
                "Identifier": CASES[*case], "Variant": format!("v{variant}"), "Result": "Failed",
                "Steps": [{ "StepNr": 1, "Result": "Failed", "ActualResult": TEXTS[*text] }],
            })
        };
        let results: Vec<Value> = failing.iter().map(sent).collect();
        self.executions.push(run(&self.world, "main", json!(results)).await?);
        self.model.run(failing);
        Ok(())
    }

    async fn mute(&mut self, text: usize) -> Result<()> {
        if self.model.known.insert(text) {
            let known = CreateKnownFailureInput {
                fingerprint: self.fingerprints[text].clone(),
                every_case: true,
                muted_until: Some(in_days(30)),
                ..Default::default()
            };
            make_known(&self.world, known).await?;
        }
        Ok(())
    }

    /// Compares the causes of every execution, with their tests, and the mutes.
    async fn compare(&self) -> Result<()> {
        for (nr, execution) in self.executions.iter().enumerate() {
            for muted in [None, Some(true), Some(false)] {
                self.compare_causes(nr, execution, muted).await?;
            }
            let muted = self.model.executions[nr].1.len();
            let changes = summary(&self.world, execution).await?.changes.unwrap();
            ensure!(usize::try_from(changes.muted)? == muted, "{changes:?}");
            let entries = reports(&self.world, execution).await?;
            let unreviewed = entries.iter().filter(|entry| !entry.is_muted).count();
            ensure!(usize::try_from(changes.unreviewed)? == unreviewed, "{changes:?}");
        }
        let fingerprints: Vec<String> =
            sqlx::query_scalar("select encode(fingerprint, 'hex') from known_failure")
                .fetch_all(&self.world.db)
                .await?;
        let known: BTreeSet<&String> = fingerprints.iter().collect();
        let expected: BTreeSet<&String> =
            self.model.known.iter().map(|text| &self.fingerprints[*text]).collect();
        ensure!(fingerprints.len() == known.len() && known == expected, "{known:?}, {expected:?}");
        Ok(())
    }

    async fn compare_causes(
        &self,
        nr: usize,
        execution: &Execution,
        muted: Option<bool>,
    ) -> Result<()> {
        let execution_id = execution.id.clone();
        let request =
            ListFailuresRequest { execution_id: execution_id.clone(), muted, ..Default::default() };
        let causes = failures(&self.world, request).await?;
        let counts = self.model.counts(nr, muted);
        ensure!(causes.len() == counts.len(), "{causes:?} instead of {counts:?}");
        for (text, count) in counts {
            let fingerprint = &self.fingerprints[text];
            let cause = causes.iter().find(|cause| cause.fingerprint == *fingerprint);
            let numbers = cause.map(|cause| [cause.count, cause.variants, cause.unreviewed]);
            let expected = [&count.cases, &count.texts, &count.unreviewed];
            let expected = expected.map(|of| i32::try_from(of.len()).unwrap());
            ensure!(numbers == Some(expected), "{numbers:?} instead of {expected:?} of {text}");
            let fingerprint = Some(fingerprint.clone());
            let execution_id = execution_id.clone();
            let request =
                ListTestReportsRequest { execution_id, fingerprint, muted, ..Default::default() };
            let listed = list_reports(&self.world, request).await?.into_iter();
            let mut listed: Vec<_> = listed.map(|entry| entry.test_case_identifier).collect();
            listed.sort_unstable();
            let counted: Vec<_> = count.cases.iter().map(|case| CASES[*case]).collect();
            ensure!(listed == counted, "{listed:?} instead of {counted:?} of {text}");
        }
        Ok(())
    }
}

async fn compare(steps: &[Step]) -> Result<()> {
    let mut compared = Compared::new().await?;
    for step in steps {
        compared.perform(step).await?;
        compared.compare().await?;
    }
    Ok(())
}

#[test]
fn causes_and_mutes_agree_with_a_recount_after_they_were_joined_and_split() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let config = Config {
        cases: HISTORIES,
        failure_persistence: None,
        max_shrink_iters: 40,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&vec(step(), 4..12), |steps| {
            let done = runtime.block_on(compare(&steps));
            done.map_err(|error| TestCaseError::fail(format!("{error:#}")))
        })
        .unwrap();
}
