//! Statistics of the instances of a test report.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a few durations"
)]

use anyhow::Result;
use assay_proto::execution::{InstanceEntry, InstanceStatistics, OpenExecutionInput};
use proptest::{
    prelude::{Just, prop},
    prop_oneof,
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::{Value, json};

use super::{statistics, with_durations};
use crate::world::World;

#[tokio::test]
async fn statistics_describe_a_box_plot() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 10)]).await?;
    let execution = world.start().await?;
    let durations = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 30.0];
    world.report(&execution.id, with_durations("a", &durations)).await?;
    let report = &execution.test_reports[0];

    let statistics = statistics(&world, report).await?;

    let quartiles = (statistics.first_quartile, statistics.median, statistics.third_quartile);
    assert_eq!(quartiles, (3.0, 5.0, 7.0));
    assert!((statistics.mean - 66.0 / 9.0).abs() < 1e-12);
    assert_eq!((statistics.lower_value, statistics.upper_value), (1.0, 8.0));
    assert_eq!((statistics.total_count, statistics.passed_count), (9, 9));
    let outliers: Vec<i32> = statistics.outliers.iter().map(|entry| entry.instance_nr).collect();
    assert_eq!(outliers, [9]);
    Ok(())
}

#[tokio::test]
async fn announced_instances_have_no_duration_yet() -> Result<()> {
    let world = World::new().await?;
    let input = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        ..OpenExecutionInput::default()
    };
    let execution = world.open(input).await?;
    let results = json!([
        { "Identifier": "a", "Variant": "one", "Result": "Passed", "DurationInSec": 4.0 },
        { "Identifier": "a", "Variant": "two", "Result": "Passed", "DurationInSec": 6.0 },
        { "Identifier": "a", "Variant": "three", "Result": "NotExecuted" },
    ]);
    world.report(&execution.id, results).await?;
    let report = &world.execution(&execution.id).await?.test_reports[0];

    let statistics = statistics(&world, report).await?;

    assert_eq!((statistics.lower_value, statistics.median), (4.0, 5.0));
    assert_eq!((statistics.total_count, statistics.passed_count), (2, 2));
    Ok(())
}

#[tokio::test]
async fn statistics_interpolate_quartiles_and_count_results() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 4)]).await?;
    let execution = world.start().await?;
    let results: Vec<Value> = ["Passed", "Failed", "Aborted", "Error"]
        .iter()
        .zip([1.0, 2.0, 3.0, 4.5])
        .zip(1..)
        .map(|((result, seconds), nr)| {
            json!({ "Identifier": "a", "InstanceNr": nr, "Result": result, "DurationInSec": seconds })
        })
        .collect();
    world.report(&execution.id, json!(results)).await?;

    let statistics = statistics(&world, &execution.test_reports[0]).await?;

    assert_eq!(
        statistics,
        InstanceStatistics {
            lower_value: 1.0,
            first_quartile: 1.75,
            median: 2.5,
            mean: 2.625,
            third_quartile: 3.375,
            upper_value: 4.5,
            total_count: 4,
            failed_count: 1,
            passed_count: 1,
            aborted_count: 1,
            outliers: Vec::new(),
        }
    );
    Ok(())
}

/// Reference implementation of the statistics.
fn expected(durations: &[f64]) -> InstanceStatistics {
    let mut sorted = durations.to_vec();
    sorted.sort_by(f64::total_cmp);
    let quantile = |share: f64| {
        let position = share * (sorted.len() - 1) as f64;
        let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
        below + (above - below) * position.fract()
    };
    let (first, third) = (quantile(0.25), quantile(0.75));
    let reach = 1.5 * (third - first);
    let near = |seconds: &&f64| (first - reach..=third + reach).contains(*seconds);
    InstanceStatistics {
        lower_value: *sorted.iter().find(near).unwrap(),
        first_quartile: first,
        median: quantile(0.5),
        mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
        third_quartile: third,
        upper_value: *sorted.iter().rev().find(near).unwrap(),
        total_count: sorted.len() as i32,
        passed_count: sorted.len() as i32,
        outliers: (1..)
            .zip(durations)
            .filter(|(_, seconds)| !near(seconds))
            .map(|(instance_nr, _)| InstanceEntry { instance_nr, ..InstanceEntry::default() })
            .collect(),
        ..InstanceStatistics::default()
    }
}

#[tokio::test]
async fn statistics_match_the_reference_for_random_durations() -> Result<()> {
    let world = World::new().await?;
    let mut runner = TestRunner::deterministic();
    let milliseconds = prop_oneof![3 => 900..1100, 1 => 0..5000, 1 => Just(0)];
    let milliseconds = prop::collection::vec(milliseconds, 1..60);
    let cases: Vec<(String, Vec<f64>)> = (0..40)
        .map(|nr| {
            let milliseconds = milliseconds.new_tree(&mut runner).unwrap().current();
            let durations = milliseconds.iter().map(|ms| f64::from(*ms) / 1000.0).collect();
            (format!("case {nr}"), durations)
        })
        .collect();
    let instances: Vec<_> = cases.iter().map(|(case, _)| (case.as_str(), 60)).collect();
    world.include(&instances).await?;
    let execution = world.start().await?;
    for (case, durations) in &cases {
        world.report(&execution.id, with_durations(case, durations)).await?;
    }
    for (report, (case, durations)) in execution.test_reports.iter().zip(&cases) {
        assert_eq!(&report.test_case_identifier, case);
        let found = statistics(&world, report).await?;

        let expected = expected(durations);
        for (found, expected) in [
            (found.lower_value, expected.lower_value),
            (found.first_quartile, expected.first_quartile),
            (found.median, expected.median),
            (found.mean, expected.mean),
            (found.third_quartile, expected.third_quartile),
            (found.upper_value, expected.upper_value),
        ] {
            assert!((found - expected).abs() < 1e-9, "{found}, not {expected}, of {durations:?}");
        }
        let numbers = |outliers: &[InstanceEntry]| -> Vec<i32> {
            outliers.iter().map(|entry| entry.instance_nr).collect()
        };
        assert_eq!(numbers(&found.outliers), numbers(&expected.outliers), "{durations:?}");
        let counts = (found.total_count, found.passed_count);
        assert_eq!(counts, (expected.total_count, expected.passed_count));
    }
    Ok(())
}
