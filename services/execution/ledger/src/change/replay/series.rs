//! The histories of tests in the baselines of several executions.

use std::collections::{HashMap, HashSet};

use assay_judge::History;
use assay_proto::{CustomerId, EnvironmentId, Fault, TestCaseId};
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    Ended,
    store::{self, Earlier, Failing},
};
use crate::change::history::{Baseline, Coded, Origin};

/// Executions with the same environment and branch.
#[derive(Default)]
struct Series {
    /// The executions of all their baselines, each once.
    baselines: Vec<Uuid>,
    /// The tests whose results are read.
    cases: HashSet<TestCaseId>,
    /// The results of a test in these executions, in their order; nothing for those that lack it.
    results: HashMap<TestCaseId, Vec<Option<Coded>>>,
}

/// An execution: the index of its series, its baseline, and the indices of its baseline in the series.
struct Place {
    series: usize,
    baseline: Baseline,
    indices: Vec<usize>,
}

/// The series of executions, with the results of tests that fail there.
pub(super) struct AllSeries {
    series: Vec<Series>,
    places: Vec<Place>,
}

impl AllSeries {
    /// Reads the results of failing tests in the baselines of executions.
    pub(super) async fn read(
        db: &PgPool,
        customer: CustomerId,
        executions: &[Ended<'_>],
        failing: &[Failing],
    ) -> Result<Self, Fault> {
        let (mut series, series_of) = grouped(executions);
        for failure in failing {
            series[series_of[failure.index()?]].cases.insert(failure.test_case);
        }
        // Nothing is read for executions without failures in this slice.
        series.iter_mut().filter(|one| one.cases.is_empty()).for_each(|one| one.baselines.clear());
        let (mut tests, mut baselines) = (Vec::new(), Vec::new());
        for (index, one) in (0..).zip(&series) {
            tests.extend(one.cases.iter().map(|case| (index, *case)));
            let earlier = (0..).zip(&one.baselines);
            baselines.extend(earlier.map(|(nr, id)| Earlier { series: index, nr, id: *id }));
        }
        let ids: HashSet<Uuid> = baselines.iter().map(|earlier| earlier.id).collect();
        let origins = store::origins(db, customer, &Vec::from_iter(ids)).await?;
        for (index, case, coded) in store::results(db, customer, &tests, &baselines).await? {
            let one = usize::try_from(index).ok().and_then(|index| series.get_mut(index));
            one.ok_or_else(|| Fault::internal("no such series"))?.add(case, &coded);
        }
        let places = executions.iter().zip(series_of);
        let places =
            places.map(|(execution, index)| Place::of(execution, index, &series, &origins));
        Ok(Self { places: places.collect(), series })
    }

    /// Applies a rule to the history of a test before an execution.
    pub(super) fn with<T>(
        &self,
        execution: usize,
        case: TestCaseId,
        rule: impl FnOnce(&History<'_>) -> T,
    ) -> T {
        let place = &self.places[execution];
        let results = self.series[place.series].results.get(&case);
        let coded = place.indices.iter().enumerate().filter_map(|(nr, index)| {
            let outcome = results?.get(*index).copied().flatten()? & 3;
            Some(4 * Coded::try_from(nr).ok()? + outcome)
        });
        place.baseline.with(&coded.collect::<Vec<_>>(), rule)
    }
}

impl Series {
    fn add(&mut self, case: TestCaseId, coded: &[Coded]) {
        let results = self.results.entry(case).or_insert_with(|| vec![None; self.baselines.len()]);
        for coded in coded {
            let index = usize::try_from(coded >> 2).unwrap_or(usize::MAX);
            if let Some(result) = results.get_mut(index) {
                *result = Some(*coded);
            }
        }
    }
}

impl Place {
    fn of(
        execution: &Ended<'_>,
        index: usize,
        series: &[Series],
        origins: &HashMap<Uuid, Origin>,
    ) -> Self {
        let known = series[index].baselines.iter().enumerate();
        let known: HashMap<Uuid, usize> = known.map(|(index, id)| (*id, index)).collect();
        let mut latest_first = execution.baseline.to_vec();
        latest_first.sort_unstable_by(|one, other| other.cmp(one));
        let age = |id: &Uuid| latest_first.binary_search_by(|other| id.cmp(other)).unwrap_or(0);
        let origin = |id: &Uuid| {
            let age = i64::try_from(age(id)).unwrap_or(i64::MAX);
            Origin { age, ..origins.get(id).cloned().unwrap_or_default() }
        };
        let baseline =
            Baseline::of(execution.branch, execution.baseline.iter().map(origin).collect());
        let indices = execution.baseline.iter();
        let indices = indices.map(|id| known.get(id).copied().unwrap_or(usize::MAX)).collect();
        Self { series: index, baseline, indices }
    }
}

/// Returns the series of executions, and the index of that of each execution.
fn grouped(executions: &[Ended<'_>]) -> (Vec<Series>, Vec<usize>) {
    let mut indices: HashMap<(Option<EnvironmentId>, &str), usize> = HashMap::new();
    let (mut series, mut seen) = (Vec::<Series>::new(), Vec::<HashSet<Uuid>>::new());
    let mut series_of = Vec::with_capacity(executions.len());
    for execution in executions {
        let index =
            *indices.entry((execution.environment, execution.branch)).or_insert_with(|| {
                series.push(Series::default());
                seen.push(HashSet::new());
                series.len() - 1
            });
        let new = execution.baseline.iter().filter(|id| seen[index].insert(**id));
        series[index].baselines.extend(new);
        series_of.push(index);
    }
    (series, series_of)
}
