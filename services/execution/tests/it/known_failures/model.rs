//! Mutes, compared with a brute-force model: every decision is derived again from a plain list of what was
//! known at that time.

mod compared;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use anyhow::Result;
use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    test_runner::{Config, TestRunner},
};

use self::compared::Compared;

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

async fn compare(steps: &[Step]) -> Result<()> {
    let mut compared = Compared::new().await?;
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
