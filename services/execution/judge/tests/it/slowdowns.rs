//! Slowdowns whose truth is known, compared with what Apache Otava finds. `slowdowns.py` generates them.

use assay_judge::Slowdown;
use serde::Deserialize;

/// A series of durations.
#[derive(Deserialize)]
struct Series {
    kind: String,
    /// The first slow run, if the test is slower at the end.
    slower: Option<usize>,
    /// The last increase that Otava finds.
    otava: Option<usize>,
    /// In seconds.
    durations: Vec<f64>,
}

impl Series {
    fn all() -> Vec<Self> {
        let lines = include_str!("slowdowns.json").lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn found(&self) -> Option<usize> {
        Slowdown::of(&self.durations).map(|slowdown| slowdown.at)
    }

    /// Whether a run is the first slow one, give or take two.
    fn is_right(&self, at: Option<usize>) -> bool {
        at.zip(self.slower).is_some_and(|(at, slower)| at.abs_diff(slower) <= 2)
    }
}

#[test]
fn no_test_is_slower_without_a_slowdown_that_lasts() {
    for series in Series::all().iter().filter(|series| series.slower.is_none()) {
        assert_eq!(series.found(), None, "{}: {:?}", series.kind, series.durations);
    }
}

#[test]
fn slowdowns_are_found_that_otava_finds_and_more() {
    let slowdowns: Vec<_> =
        Series::all().into_iter().filter(|series| series.slower.is_some()).collect();
    for series in slowdowns.iter().filter(|series| series.otava.is_some()) {
        assert!(series.found().is_some(), "{:?}", series.durations);
    }
    let found = slowdowns.iter().filter(|series| series.is_right(series.found())).count();
    let otava = slowdowns.iter().filter(|series| series.is_right(series.otava)).count();
    assert_eq!((slowdowns.len(), found, otava), (50, 41, 29));
}
