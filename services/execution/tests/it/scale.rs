//! Scale: many concurrent reporters, large requests and endless files.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use assay_proto::{
    ReportStatus,
    execution::{ReportResultsRequest, ReportResultsTarget, ReportedResults, UploadResultsRequest},
};
use futures::{future::try_join_all, stream};
use serde_json::{Value, json};
use tonic::Status;

use crate::world::{World, reason};

/// Returns the steps of an instance, as JSON.
fn steps() -> String {
    let step = |nr: i32| {
        json!({ "StepNr": nr, "TestInput": format!("add item {nr}"), "DurationInSec": 0.25,
                "ActualResult": format!("cart shows {nr} items"), "Result": "Passed" })
    };
    json!((1..=20).map(step).collect::<Vec<_>>()).to_string()
}

/// Reports this number of instances of one case with 20 steps each, generated while they are sent.
async fn report(world: &World, execution: &str, count: i32) -> Result<ReportedResults, Status> {
    let target = ReportResultsTarget {
        project_id: world.project.clone(),
        execution_id: execution.to_owned(),
        lines: true,
    };
    let head = ReportResultsRequest { target: Some(target), ..ReportResultsRequest::default() };
    let steps = steps();
    let results = (1..=count).map(move |nr| {
        let seconds = f64::from(nr % 100) / 10.0;
        let result = format!(
            "{{\"Identifier\":\"a\",\"InstanceNr\":{nr},\"Result\":\"Passed\",\
             \"DurationInSec\":{seconds},\"Steps\":{steps}}}\n"
        );
        ReportResultsRequest { chunk: result.into(), ..ReportResultsRequest::default() }
    });
    let end = ReportResultsRequest { last: true, ..ReportResultsRequest::default() };
    let messages = stream::iter([head].into_iter().chain(results).chain([end]));
    let answer = world.results().report_results(slow_call(world, messages)).await?;
    Ok(answer.into_inner())
}

/// Returns a call with a long timeout, for busy machines.
fn slow_call<T>(world: &World, message: T) -> tonic::Request<T> {
    world.user.caller.call_within(Duration::from_mins(2), message)
}

/// Returns the peak memory of this process, in mebibytes.
pub(crate) fn peak_memory() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? >> 10)
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_reporters_leave_exact_counts() -> Result<()> {
    let world = World::new().await?;
    let names: Vec<String> = (0..20).map(|nr| format!("case {nr}")).collect();
    let cases: Vec<(&str, i32)> = names.iter().map(|name| (name.as_str(), 5)).collect();
    world.include(&cases).await?;
    let execution = world.start().await?;
    // Each sends a part of the hundred instances in an order of its own, so each instance is sent
    // several times.
    let body = |reporter: usize| {
        let mut results: Vec<Value> = (0..20)
            .filter(|case| case % 4 == reporter % 4)
            .flat_map(|case| (1..=5).map(move |nr| (case, nr)))
            .filter(|(_, nr)| nr % 2 == i32::from(reporter % 8 < 4))
            .map(|(case, nr)| {
                let result = if case == 3 && nr == 2 { "Failed" } else { "Passed" };
                json!({ "Identifier": format!("case {case}"), "InstanceNr": nr, "Result": result,
                        "DurationInSec": 0.5 })
            })
            .collect();
        results.rotate_left(reporter % 10);
        json!(results)
    };

    let sent = try_join_all((0..50).map(|reporter| world.report(&execution.id, body(reporter))));
    let accepted: i32 = sent.await?.iter().map(|reported| reported.accepted).sum();

    assert_eq!(accepted, 100);
    let done = world.execution(&execution.id).await?;
    let statistic = done.statistic.as_ref().unwrap();
    let counts = (statistic.test_cases_pending, statistic.test_cases_passed);
    assert_eq!((counts, statistic.test_cases_failed), ((0, 19), 1));
    assert!(done.test_reports.iter().all(|report| report.status() == ReportStatus::InReview));
    let lasted = |seconds: f64| {
        done.test_reports.iter().all(|report| (report.total_duration_in_sec - seconds).abs() < 1e-9)
    };
    assert!(lasted(2.5));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_ten_thousand_results_needs_little_memory() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 10_000)]).await?;
    let execution = world.start().await?;
    let before = peak_memory()?;

    let reported = report(&world, &execution.id, 10_000).await?;

    let memory = peak_memory()? - before;
    assert_eq!((reported.accepted, reported.duplicates), (10_000, 0));
    assert!(memory < 64, "it took {memory} MiB");
    let entries = world.instances(&execution.test_reports[0]).await?;
    assert!(entries.iter().map(|entry| entry.instance_nr).eq(1..=10_000));
    let path = world.instance_path(&execution.test_reports[0], &entries[0].id);
    let statistics =
        world.reports().get_instance_statistics(world.user.call(path)).await?.into_inner();
    assert_eq!(statistics.total_count, 10_000);
    assert_eq!((statistics.lower_value, statistics.upper_value), (0.0, 9.9));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_thousands_of_tests_can_be_uploaded() -> Result<()> {
    let world = World::new().await?;
    let test = |nr: i32| {
        format!("<testcase classname='com.acme.C{}' name='test{nr}' time='0.1'/>", nr % 100)
    };
    let tests: String = (0..3400).map(test).collect();

    let execution = world.upload(&[format!("<testsuite>{tests}</testsuite>").as_bytes()]).await?;

    assert_eq!(execution.test_reports.len(), 3400);
    assert_eq!(execution.test_reports[17].test_case_identifier, "com.acme.C17.test17");
    assert_eq!(execution.statistic.unwrap().test_cases_passed, 3400);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_files_are_rejected_with_little_memory() -> Result<()> {
    let world = World::new().await?;
    for (beginning, rest) in [
        ("", "<testsuite>"),
        ("<!DOCTYPE a [", "<!ENTITY a 'b'>"),
        ("<testsuite>", "<testcase name='a'/>"),
    ] {
        let before = peak_memory()?;
        let head = UploadResultsRequest {
            target: Some(world.upload_target()),
            chunk: beginning.into(),
            ..UploadResultsRequest::default()
        };
        let more = UploadResultsRequest {
            chunk: rest.repeat(5_000).into(),
            ..UploadResultsRequest::default()
        };
        let endless = stream::iter(std::iter::once(head).chain(std::iter::repeat(more)));

        let refused = world.results().upload_results(slow_call(&world, endless)).await;

        assert_eq!(reason(&refused.map(drop).unwrap_err()), "too_large", "{rest}");
        let memory = peak_memory()? - before;
        assert!(memory < 128, "{rest} took {memory} MiB");
    }
    Ok(())
}
