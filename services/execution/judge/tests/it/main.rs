//! The rule is as good as `docs/design/judgement.md` says, for histories whose truth is known.

#[path = "../../examples/truth/generator.rs"]
mod generator;
#[path = "../../examples/truth/score.rs"]
mod score;
mod slowdowns;

use assay_judge::Rule;

use self::{
    generator::{Population, Random},
    score::{Gates, Score},
};

const RATES: [u32; 7] = [1, 2, 5, 10, 20, 30, 50];

#[test]
fn failures_of_flaky_tests_are_seldom_new() {
    for (rate, most) in [(5, 40.0), (10, 10.0), (20, 1.0), (30, 0.5), (50, 0.5)] {
        let share = score::flakes_called_new(rate, Rule::default());
        assert!(share < most, "{share} % of the failures of tests with a rate of {rate} % are new");
    }
}

#[test]
fn no_regression_of_a_stable_test_is_missed() {
    for length in [1, 2, 3, 5] {
        assert_eq!(
            score::missed_after_break(length, Rule::default()),
            0,
            "after {length} failures"
        );
    }
    let population = Population { tests: 2000, runs: 200 };
    let [(_, Score { missed, .. }), ..] = population.judged(Rule::default(), &mut Random::new(3));
    assert_eq!(missed, 0);
}

#[test]
fn gates_are_seldom_red_without_a_regression_and_never_green_with_one() {
    let Gates { quiet, red, green, .. } = score::gates(Rule::default());
    assert!(10 * red < quiet, "{red} of {quiet} quiet runs are red");
    assert_eq!(green, 0);
}
