//! Generates histories of tests whose truth is known, judges them, and prints how often the rule is right.
//! `make judgement` runs it, and `docs/design/judgement.md` has its tables.

mod generator;
mod score;

use assay_judge::Rule;

use self::{
    generator::{Population, Random},
    score::{Gates, Score},
};

/// Rates of failures of flaky tests, in percent.
const RATES: [u32; 7] = [1, 2, 5, 10, 20, 30, 50];

/// Lengths of the single earlier break of a stable test.
const BREAKS: [usize; 4] = [1, 2, 3, 5];

fn main() {
    let rule = Rule::default();
    println!("## Failures of flaky tests that count as new\n");
    println!("400 tests for each rate, 120 runs on one branch after 50 others, without retries.\n");
    println!("| Rate | {} |", RATES.map(|rate| format!("{rate} %")).join(" | "));
    println!("|---|{}", "---:|".repeat(RATES.len()));
    let shares = RATES.map(|rate| score::flakes_called_new(rate, rule));
    println!("| New | {} |", shares.map(|share| format!("{share:.0} %")).join(" | "));

    println!("\n## Regressions after one earlier break\n");
    println!("| Length of the break | {} |", BREAKS.map(|runs| runs.to_string()).join(" | "));
    println!("|---|{}", "---:|".repeat(BREAKS.len()));
    let missed = BREAKS.map(|runs| score::missed_after_break(runs, rule));
    println!("| Missed, of 400 | {} |", missed.map(|count| count.to_string()).join(" | "));

    println!("\n## All kinds of tests\n");
    println!("100,000 tests over 200 runs, with branches, partial runs, retries and outages.\n");
    println!("| Change | Precision | Recall |\n|---|---:|---:|");
    let population = Population { tests: 100_000, runs: 200 };
    for (name, Score { right, wrong, missed }) in population.judged(rule, &mut Random::new(1)) {
        let percent = |of: usize| 100.0 * ratio(right, right + of);
        println!("| {name} | {:.1} % | {:.1} % |", percent(wrong), percent(missed));
    }

    println!("\n## Gates\n");
    println!("1,000 test sets of 120 tests, 12 of them flaky (10 to 50 %), after 20 runs.\n");
    let Gates { quiet, red, regressions, green } = score::gates(rule);
    println!("| Runs | Number | Wrong gate | Share |\n|---|---:|---:|---:|");
    println!(
        "| without a regression | {quiet} | {red} failed | {:.1} % |",
        100.0 * ratio(red, quiet)
    );
    let share = 100.0 * ratio(green, regressions);
    println!(
        "| with a regression of a stable test | {regressions} | {green} passed | {share:.1} % |"
    );
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
