//! Reporting results to a running execution.

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, ReportStatus, TestResult,
    execution::{ReportResultsRequest, ReportResultsTarget},
};
use futures::stream;
use serde_json::{Value, json};
use tonic::Code;

use crate::world::{World, fields, reason};

#[tokio::test]
async fn the_result_of_a_report_is_its_worst_instance() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("search", 3)]).await?;
    let execution = world.start().await?;
    let result = |nr: i32, result: &str, seconds: f64| {
        json!([{ "Identifier": "search", "InstanceNr": nr, "Result": result,
                 "DurationInSec": seconds }])
    };

    world.report(&execution.id, result(2, "Failed", 1.0)).await?;
    let report = world.test_report(&execution.test_reports[0].id).await?;
    assert_eq!((report.result(), report.status()), (TestResult::Failed, ReportStatus::Running));
    world.report(&execution.id, result(1, "Passed", 2.0)).await?;
    world.report(&execution.id, result(3, "Aborted", 6.0)).await?;

    let report = world.test_report(&report.id).await?;
    assert_eq!((report.result(), report.status()), (TestResult::Failed, ReportStatus::InReview));
    let durations = (report.total_duration_in_sec, report.average_duration_in_sec);
    assert_eq!(durations, (9.0, 3.0));
    let execution = world.execution(&execution.id).await?;
    assert_eq!(execution.result(), TestResult::Failed);
    assert_eq!(execution.status(), ExecutionStatus::Running);
    assert_eq!(execution.statistic.unwrap().test_cases_failed, 1);
    Ok(())
}

#[tokio::test]
async fn missing_times_are_derived_from_the_others() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 4)]).await?;
    let execution = world.start().await?;
    let (start, finish) = ("2026-11-20T12:00:00.000000Z", "2026-11-20T12:00:01.500000Z");
    let results = json!([
        { "Identifier": "a", "InstanceNr": 1, "Result": "Passed",
          "StartDateTime": start, "FinishDateTime": finish },
        { "Identifier": "a", "InstanceNr": 2, "Result": "Passed",
          "StartDateTime": start, "DurationInSec": 1.5 },
        { "Identifier": "a", "InstanceNr": 3, "Result": "Passed",
          "FinishDateTime": finish, "DurationInSec": 1.5 },
        { "Identifier": "a", "InstanceNr": 4, "Result": "Passed" },
    ]);

    world.report(&execution.id, results).await?;

    let report = world.test_report(&execution.test_reports[0].id).await?;
    let instances = serde_json::to_value(world.instances(&report).await?)?;
    for instance in instances.as_array().unwrap().iter().take(3) {
        let times = (&instance["StartDateTime"], &instance["FinishDateTime"]);
        assert_eq!(times, (&json!(start), &json!(finish)), "{instance}");
        assert_eq!(instance["DurationInSec"], 1.5);
    }
    assert_eq!(instances[3]["StartDateTime"], Value::Null);
    assert_eq!(instances[3]["DurationInSec"], 0.0);
    let report = serde_json::to_value(&report)?;
    let times = (&report["StartDateTime"], &report["FinishDateTime"]);
    assert_eq!(times, (&json!(start), &json!(finish)));
    Ok(())
}

#[tokio::test]
async fn repeated_results_are_counted_as_duplicates() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 2)]).await?;
    let execution = world.start().await?;
    let a = json!({ "Identifier": "a", "Result": "Passed" });
    let b = json!({ "TestCaseId": execution.test_reports[1].test_case_id, "Result": "Failed" });

    let first = world.report(&execution.id, json!([a, a])).await?;
    assert_eq!((first.accepted, first.duplicates), (1, 1));
    let second = world.report(&execution.id, json!([a, b])).await?;
    assert_eq!((second.accepted, second.duplicates), (1, 1));
    let before = (world.execution(&execution.id).await?, world.events().await?.len());
    let other = json!({ "Identifier": "b", "Result": "Error", "Steps": [{ "StepNr": 1,
        "Result": "Error", "DurationInSec": 0 }] });
    let third = world.report(&execution.id, json!([b, a, other])).await?;
    assert_eq!((third.accepted, third.duplicates), (0, 3));

    assert_eq!((world.execution(&execution.id).await?, world.events().await?.len()), before);
    assert_eq!(world.count("select count(*) from instance").await?, 2);
    assert_eq!(world.count("select count(*) from attempt").await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_ended_execution_accepts_only_duplicates() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.start().await?;
    let a = json!({ "Identifier": "a", "Result": "Passed" });
    let b = json!({ "Identifier": "b", "Result": "Passed" });
    world.report(&execution.id, json!([a])).await?;
    world.complete(&execution.id).await?;

    let again = world.report(&execution.id, json!([a])).await?;
    assert_eq!((again.accepted, again.duplicates), (0, 1));
    let late = world.report(&execution.id, json!([a, b])).await.unwrap_err();
    assert_eq!(late.code(), Code::FailedPrecondition);
    assert_eq!(reason(&late), "execution_ended");
    assert_eq!(world.count("select count(*) from instance").await?, 1);
    Ok(())
}

#[tokio::test]
async fn one_invalid_result_rejects_the_whole_request() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 2)]).await?;
    let execution = world.start().await?;
    let good = json!({ "Identifier": "a", "Result": "Passed" });
    for (bad, field) in [
        (json!({ "Identifier": "c", "Result": "Passed" }), "1/Identifier"),
        (json!({ "TestCaseId": world.set, "Result": "Passed" }), "1/TestCaseId"),
        (json!({ "TestCaseId": "0", "Result": "Passed" }), "1/TestCaseId"),
        (json!({ "Result": "Passed" }), "1/TestCaseId"),
        (json!({ "Identifier": "b\0", "Result": "Passed" }), "1/Identifier"),
        (json!({ "Identifier": "b" }), "1/Result"),
        (json!({ "Identifier": "b", "Result": "NotExecuted" }), "1/Result"),
        (json!({ "Identifier": "b", "Result": "Great" }), "1/Result"),
        (json!({ "Identifier": "b", "Result": "Passed", "InstanceNr": 3 }), "1/InstanceNr"),
        (json!({ "Identifier": "b", "Result": "Passed", "InstanceNr": 0 }), "1/InstanceNr"),
        (json!({ "Identifier": "b", "Result": "Passed", "InstanceNr": "1" }), "1/InstanceNr"),
        (json!({ "Identifier": "b", "Result": "Passed", "DurationInSec": -1 }), "1/DurationInSec"),
        (
            json!({ "Identifier": "b", "Result": "Passed", "DurationInSec": 1e12 }),
            "1/DurationInSec",
        ),
        (
            json!({ "Identifier": "b", "Result": "Passed", "StartDateTime": "2026-11-20T12:00:00Z",
            "FinishDateTime": "2026-11-20T11:00:00Z" }),
            "1/FinishDateTime",
        ),
        (
            json!({ "Identifier": "b", "Result": "Passed", "StartDateTime": "1971-01-01T00:00:00Z",
            "FinishDateTime": "2026-11-20T11:00:00Z", "DurationInSec": 1 }),
            "1/FinishDateTime",
        ),
        (json!({ "Identifier": "b", "Result": "Passed", "ReportUri": "a\0b" }), "1/ReportUri"),
        (
            json!({ "Identifier": "b", "Result": "Passed", "ArtifactsUri": "javascript:alert(1)" }),
            "1/ArtifactsUri",
        ),
        (
            json!({ "Identifier": "b", "Result": "Passed", "DebugLogUri": "https://a:b@ci.example" }),
            "1/DebugLogUri",
        ),
        (
            step(&json!({ "StepNr": 1, "Result": "Passed", "Thumbnail": "file:///etc/passwd" })),
            "1/Steps/0/Thumbnail",
        ),
        (
            step(&json!({ "StepNr": 1, "Result": "Passed", "Screenshots": ["", "ftp://x/y"] })),
            "1/Steps/0/Screenshots/1",
        ),
        (step(&json!({ "StepNr": 1 })), "1/Steps/0/Result"),
        (step(&json!({ "StepNr": 0, "Result": "Passed" })), "1/Steps/0/StepNr"),
        (
            step(&json!({ "StepNr": 1, "Result": "Passed", "TestInput": "\0" })),
            "1/Steps/0/TestInput",
        ),
        (
            step(&json!({ "StepNr": 1, "Result": "Passed", "ActualResult": "x".repeat(70_000) })),
            "1/Steps/0/ActualResult",
        ),
        (
            step(&json!({ "StepNr": 1, "Result": "Passed", "Screenshots": [1] })),
            "1/Steps/0/Screenshots/0",
        ),
        (
            json!({ "Identifier": "b", "Result": "Passed", "Steps": (1..30).map(|nr| json!(
            { "StepNr": nr, "Result": "Passed", "ActualResult": "x".repeat(60_000) }
        )).collect::<Vec<_>>() }),
            "1/Steps",
        ),
        (json!(7), "1"),
    ] {
        let refused = world.report(&execution.id, json!([good, bad])).await.unwrap_err();
        assert_eq!(fields(&refused), [field], "{bad:.200}");
    }
    assert_eq!(world.count("select count(*) from instance").await?, 0);
    assert_eq!(world.execution(&execution.id).await?, execution);
    Ok(())
}

fn step(step: &Value) -> Value {
    json!({ "Identifier": "b", "Result": "Passed", "Steps": [step] })
}

#[tokio::test]
async fn violations_are_reported_together_up_to_a_limit() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let bad = json!({ "Identifier": "a", "InstanceNr": -1 });
    let refused = world.report(&execution.id, json!([bad])).await.unwrap_err();
    assert_eq!(fields(&refused), ["0/Result", "0/InstanceNr"]);
    let refused = world.report(&execution.id, json!(vec![bad; 1000])).await.unwrap_err();
    assert_eq!(fields(&refused).len(), 20);
    Ok(())
}

#[tokio::test]
async fn results_may_be_json_lines() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.start().await?;
    let lines = "{\"Identifier\":\"a\",\"Result\":\"Passed\"}\r\n\n\
                 {\"Identifier\":\"b\",\"Result\":\"Failed\"}";
    let reported = world.report_text(&execution.id, true, lines.to_owned()).await?;
    assert_eq!(reported.accepted, 2);
    let nothing = world.report_text(&execution.id, true, String::new()).await?;
    assert_eq!((nothing.accepted, nothing.duplicates), (0, 0));
    Ok(())
}

#[tokio::test]
async fn invalid_json_is_rejected_as_malformed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let good = r#"{"Identifier":"a","Result":"Passed"}"#;
    for body in [
        String::new(),
        "[".to_owned(),
        format!("[{good}"),
        format!("[{good},]"),
        format!("[{good}] x"),
        format!("[{good}{good}]"),
        format!("[{good}, {{\"Identifier\": nope}}]"),
    ] {
        let refused = world.report_text(&execution.id, false, body.clone()).await.unwrap_err();
        assert_eq!(reason(&refused), "malformed", "{body}");
    }
    let refused = world.report_text(&execution.id, false, good.to_owned()).await.unwrap_err();
    assert_eq!(fields(&refused), [""]);
    let too_many = format!("[{}]", vec![good; 10_001].join(","));
    let refused = world.report_text(&execution.id, false, too_many).await.unwrap_err();
    assert_eq!(fields(&refused), [""]);
    assert_eq!(world.count("select count(*) from instance").await?, 0);
    Ok(())
}

#[tokio::test]
async fn only_changed_reports_get_a_new_version() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2), ("b", 2)]).await?;
    let execution = world.start().await?;
    let a = json!({ "Identifier": "a", "Result": "Passed" });
    world.report(&execution.id, json!([a])).await?;
    world.report(&execution.id, json!([a, { "Identifier": "b", "Result": "Passed" }])).await?;
    let reports = world.execution(&execution.id).await?.test_reports;
    let versions: Vec<&str> = reports.iter().map(|report| report.data_version.as_str()).collect();
    assert_eq!(versions, ["2", "2"]);
    Ok(())
}

#[tokio::test]
async fn results_for_executions_of_other_customers_are_rejected() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let stranger = world.stranger().await;
    let target = ReportResultsTarget {
        project_id: world.project.clone(),
        execution_id: execution.id.clone(),
        lines: false,
    };
    let message = ReportResultsRequest { target: Some(target), chunk: "[]".into(), last: true };
    let request = stranger.call(stream::iter([message]));
    let refused = world.results().report_results(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let nothing = world.user.call(stream::iter([]));
    let refused = world.results().report_results(nothing).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    Ok(())
}
