//! Slowdowns: the run since which a test takes longer.
//!
//! Each place that divides the runs into earlier and later ones is tried. The Mann–Whitney statistic of a place counts
//! how often a later run takes longer than an earlier one, in standard deviations from what chance would give. The
//! slowdown is at the place with the largest statistic, if that is so large that chance does not explain it. Only the
//! order of durations matters, so that a few outliers neither make nor hide a slowdown. The method is the change-point
//! formulation of D. M. Hawkins and Q. Deng, "A Nonparametric Change-Point Control Chart", Journal of Quality
//! Technology 42 (2010).
//!
//! A slowdown also has to be large enough to matter, and to last: a test that has become fast again is not slower.

/// The change since which a test takes longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowdown {
    /// The index of the first run that takes longer.
    pub at: usize,
    /// The medians of the durations before the slowdown and since then, in seconds.
    pub before: f64,
    pub since: f64,
}

/// The statistic from which on chance does not explain a slowdown, in standard deviations. Of tests without one, at
/// most two in a hundred reach it together with the limits below.
const UNLIKELY: f64 = 3.0;

/// The smallest slowdown that matters: in relation to the duration before it, and in seconds.
const RATIO: f64 = 1.25;
const SECONDS: f64 = 0.05;

/// Number of the last runs that show whether a slowdown lasts: all but one have to be slow.
const LATEST: usize = 4;

impl Slowdown {
    /// Finds the slowdown in the durations of the runs of a test, in seconds, the earliest first. At least four slow
    /// runs after thirty are needed, and after fewer ones some more.
    pub fn of(durations: &[f64]) -> Option<Self> {
        let at = likeliest(durations)?;
        let (earlier, later) = durations.split_at(at);
        let mut latest = later.last_chunk::<LATEST>().copied()?;
        latest.sort_by(f64::total_cmp);
        let (before, since) = (median(earlier)?, median(later)?);
        let lasts = since.min(latest[1]);
        let matters = lasts >= RATIO * before && lasts - before >= SECONDS;
        matters.then_some(Self { at, before, since })
    }

    /// Returns how much longer the test takes, in seconds.
    pub fn size(&self) -> f64 {
        self.since - self.before
    }
}

/// Returns the place where later runs take longer than earlier ones most clearly, unless chance explains it.
fn likeliest(durations: &[f64]) -> Option<usize> {
    let (ranks, ties) = ranks(durations);
    let n = float(durations.len());
    // Equal durations say less.
    let variance = (n + 1.0) / 12.0 * (1.0 - ties / (n * n * n - n));
    let mut sum = 0.0;
    let statistic = |(at, rank)| {
        sum += rank;
        let earlier = float(at);
        let expected = earlier * (n + 1.0) / 2.0;
        (at, (expected - sum) / (earlier * (n - earlier) * variance).sqrt())
    };
    let (at, most) = (1..durations.len())
        .zip(ranks)
        .map(statistic)
        .max_by(|one, other| one.1.total_cmp(&other.1))?;
    (most.is_finite() && most >= UNLIKELY).then_some(at)
}

/// Returns the place of each value in their order, from 1 on, which equal values share, and the correction for those:
/// the sum of `t³ - t` over groups of `t` equal values.
fn ranks(values: &[f64]) -> (Vec<f64>, f64) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
    let (mut ranks, mut ties, mut before) = (vec![0.0; values.len()], 0.0, 0.0);
    for group in order.chunk_by(|one, other| values[*one].total_cmp(&values[*other]).is_eq()) {
        let equal = float(group.len());
        for index in group {
            ranks[*index] = before + f64::midpoint(1.0, equal);
        }
        ties += equal * equal * equal - equal;
        before += equal;
    }
    (ranks, ties)
}

/// Returns the median of values, if there are any.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some(f64::midpoint(sorted[low], sorted[high]))
}

fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(durations: &[f64]) -> Option<usize> {
        Slowdown::of(durations).map(|slowdown| slowdown.at)
    }

    #[test]
    fn a_slowdown_that_lasts_is_found_where_it_begins() {
        let durations = [[1.0; 10].as_slice(), &[2.0; 6]].concat();
        assert_eq!(Slowdown::of(&durations), Some(Slowdown { at: 10, before: 1.0, since: 2.0 }));
    }

    #[test]
    fn four_slow_runs_after_thirty_suffice_and_three_do_not() {
        let fast: Vec<f64> =
            (0..30).map(|run| 1.0 + 0.01 * f64::from((29 - run) * 7 % 30)).collect();
        let after = |slow: &[f64]| at(&[fast.as_slice(), slow].concat());
        assert_eq!(after(&[2.0, 2.1, 2.3, 2.2]), Some(30));
        assert_eq!(after(&[2.0, 2.1, 2.3]), None);
    }

    #[test]
    fn a_slowdown_that_does_not_last_or_matter_is_none() {
        for (name, durations) in [
            ("nothing", [].as_slice()),
            ("one run", &[1.0]),
            ("equal runs", &[1.0; 30]),
            ("too few", &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]),
            ("faster", &[[2.0; 20], [1.0; 20]].concat()),
            ("fast again", &[[1.0; 20].as_slice(), &[2.0; 20], &[1.0; 4]].concat()),
            ("a fifth", &[[1.0; 20], [1.2; 20]].concat()),
            ("milliseconds", &[[0.01; 20], [0.03; 20]].concat()),
        ] {
            assert_eq!(at(durations), None, "{name}");
        }
    }

    #[test]
    fn outliers_neither_make_nor_hide_a_slowdown() {
        let mut durations = vec![1.0; 40];
        durations[38] = 90.0;
        assert_eq!(at(&durations), None);
        durations[20..].fill(2.0);
        (durations[3], durations[30]) = (90.0, 0.1);
        assert_eq!(at(&durations), Some(20));
    }

    #[test]
    fn a_test_that_took_no_time_before_may_take_longer() {
        assert_eq!(at(&[[0.0; 20], [0.5; 20]].concat()), Some(20));
    }

    /// Counts pairs instead of adding ranks.
    #[test]
    fn the_statistic_is_that_of_mann_and_whitney() {
        let durations =
            [3.0, 1.0, 2.0, 2.0, 4.0, 1.0, 5.0, 6.0, 6.0, 7.0, 6.0, 8.0, 9.0, 7.0, 9.0, 8.0];
        let n = durations.len();
        let later = |at: usize| {
            let (earlier, later) = durations.split_at(at);
            let pair = |one: &f64, other: &f64| match one.total_cmp(other) {
                std::cmp::Ordering::Less => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Greater => 0.0,
            };
            let pairs: f64 = earlier
                .iter()
                .flat_map(|one| later.iter().map(move |other| pair(one, other)))
                .sum();
            let (earlier, later) = (float(at), float(n - at));
            (pairs - earlier * later / 2.0) / (earlier * later).sqrt()
        };
        let most = (1..n).max_by(|one, other| later(*one).total_cmp(&later(*other)));
        assert_eq!(likeliest(&durations), most);
    }
}
