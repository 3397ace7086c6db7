//! Instances of test reports, and the histories of their steps.

mod statistics;

use anyhow::Result;
use assay_proto::{
    Batch as _, TestResult,
    execution::{
        GetInstanceRequest, GetTestReportRequest, Instance, InstanceStatistics, TestReport,
    },
};
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::world::World;

async fn instance(world: &World, path: GetInstanceRequest) -> Result<Instance, Status> {
    Ok(world.reports().get_instance(world.user.call(path)).await?.into_inner())
}

async fn statistics(world: &World, report: &TestReport) -> Result<InstanceStatistics> {
    let first = world.instances(report).await?.remove(0);
    let path = world.instance_path(report, &first.id);
    Ok(world.reports().get_instance_statistics(world.user.call(path)).await?.into_inner())
}

/// Returns results with these durations, of the instances from 1 on.
fn with_durations(case: &str, durations: &[f64]) -> Value {
    let result = |(nr, seconds): (i32, &f64)| json!({ "Identifier": case, "InstanceNr": nr, "Result": "Passed", "DurationInSec": seconds });
    json!((1..).zip(durations).map(result).collect::<Vec<_>>())
}

#[tokio::test]
async fn an_instance_shows_the_reported_steps() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let result = json!([{
        "Identifier": "a", "Result": "Failed", "DurationInSec": 2.5,
        "ReportUri": "https://ci.example/7",
        "Steps": [
            { "StepNr": 1, "TestInput": "log in", "ExpectedResult": "greeting",
              "ActualResult": "greeting", "Result": "Passed", "DurationInSec": 1.0,
              "Screenshots": ["https://ci.example/1.png"], "Thumbnail": "https://ci.example/t.png",
              "SoftVerification": ["too slow"] },
            { "StepNr": 3, "Result": "Failed", "DurationInSec": 1.5, "ActualResult": "ä € 🙂" },
        ],
    }]);
    world.report(&execution.id, result).await?;
    let report = world.test_report(&execution.test_reports[0].id).await?;
    let entry = world.instances(&report).await?.remove(0);

    let instance = instance(&world, world.instance_path(&report, &entry.id)).await?;

    assert_eq!(instance.result(), TestResult::Failed);
    assert_eq!(instance.test_reports_id, report.id);
    assert_eq!(instance.report_uri, "https://ci.example/7");
    assert_eq!(instance.artifacts_uri, "");
    let [first, second] = &instance.steps[..] else { panic!("two steps") };
    assert_eq!(first.screenshots, ["https://ci.example/1.png"]);
    assert_eq!(
        (first.test_input.as_str(), first.soft_verification[0].as_str()),
        ("log in", "too slow")
    );
    assert_eq!((second.step_nr, second.actual_result.as_str()), (3, "ä € 🙂"));
    assert_ne!(first.id, second.id);
    Ok(())
}

#[tokio::test]
async fn a_step_shows_its_last_ten_durations() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let mut last = None;
    for number in 1..=13 {
        let execution = world.start().await?;
        let step = |nr: i32| json!({ "StepNr": nr, "Result": "Passed", "DurationInSec": number });
        let result = |nr: i32, steps: Vec<Value>| json!({ "Identifier": "a", "InstanceNr": nr, "Result": "Passed", "Steps": steps });
        let mut steps = vec![step(1)];
        if number % 2 == 1 {
            steps.push(step(2));
        }
        world.report(&execution.id, json!([result(1, steps), result(2, vec![step(9)])])).await?;
        last = execution.test_reports.into_iter().next();
    }
    let report = last.unwrap();
    let entry = world.instances(&report).await?.remove(0);

    let instance = instance(&world, world.instance_path(&report, &entry.id)).await?;

    let history = |step: usize| -> Vec<(i32, f64)> {
        let history = &instance.steps[step].history;
        history.iter().map(|earlier| (earlier.execution_number, earlier.duration_in_sec)).collect()
    };
    let expected = |numbers: &[i32]| -> Vec<(i32, f64)> {
        numbers.iter().map(|number| (*number, f64::from(*number))).collect()
    };
    assert_eq!(history(0), expected(&[12, 11, 10, 9, 8, 7, 6, 5, 4, 3]));
    assert_eq!(history(1), expected(&[11, 9, 7, 5, 3]));
    Ok(())
}

#[tokio::test]
async fn all_ids_of_a_path_must_match() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.start().await?;
    world.report(&execution.id, with_durations("a", &[1.0])).await?;
    let [a, b] = &execution.test_reports[..] else { panic!("two reports") };
    let entry = world.instances(a).await?.remove(0);
    let path = world.instance_path(a, &entry.id);
    instance(&world, path.clone()).await?;

    for wrong in [
        GetInstanceRequest { project_id: world.set.clone(), ..path.clone() },
        GetInstanceRequest { test_case_id: b.test_case_id.clone(), ..path.clone() },
        GetInstanceRequest { test_plan_id: b.test_plan_id.clone(), ..path.clone() },
        GetInstanceRequest { test_plan_id: "0".to_owned(), ..path.clone() },
        GetInstanceRequest { id: b.id.clone(), ..path.clone() },
        world.instance_path(b, &entry.id),
    ] {
        let missing = instance(&world, wrong.clone()).await.unwrap_err();
        assert_eq!(missing.code(), Code::NotFound, "{wrong:?}");
        let missing = world.reports().get_instance_statistics(world.user.call(wrong)).await;
        assert_eq!(missing.unwrap_err().code(), Code::NotFound);
    }
    let wrong = GetTestReportRequest {
        test_case_id: Some(b.test_case_id.clone()),
        id: a.id.clone(),
        ..GetTestReportRequest::default()
    };
    let missing = world.reports().get_test_report(world.user.call(wrong)).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let stranger = world.stranger().await;
    let hidden = world.reports().get_instance(stranger.call(path)).await.unwrap_err();
    assert_eq!(hidden.code(), Code::NotFound);
    let permanent = GetTestReportRequest { id: a.id.clone(), ..GetTestReportRequest::default() };
    let hidden = world.reports().get_test_report(stranger.call(permanent)).await.unwrap_err();
    assert_eq!(hidden.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn missing_instances_are_aborted_when_the_report_ends() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 5), ("b", 2)]).await?;
    let execution = world.start().await?;
    let [a, b] = &execution.test_reports[..] else { panic!("two reports") };
    let result =
        json!([{ "Identifier": "a", "InstanceNr": 2, "Result": "Passed", "DurationInSec": 3 }]);
    world.report(&execution.id, result).await?;
    assert_eq!(world.instances(a).await?.len(), 1, "the other instances are pending");

    world.complete(&execution.id).await?;

    let entries = world.instances(a).await?;
    let outline: Vec<_> = entries.iter().map(|entry| (entry.instance_nr, entry.result())).collect();
    let expected = |nr| if nr == 2 { TestResult::Passed } else { TestResult::Aborted };
    assert_eq!(outline, (1..=5).map(|nr| (nr, expected(nr))).collect::<Vec<_>>());
    for entry in &entries {
        let shown = instance(&world, world.instance_path(a, &entry.id)).await?;
        assert_eq!((shown.id.as_str(), shown.result()), (entry.id.as_str(), entry.result()));
        assert_eq!(shown.test_reports_id, a.id);
    }
    let statistics = statistics(&world, a).await?;
    let counts = (statistics.total_count, statistics.passed_count, statistics.aborted_count);
    assert_eq!(counts, (5, 1, 4));
    assert_eq!(
        (statistics.lower_value, statistics.upper_value),
        (3.0, 3.0),
        "only the reported instance has a duration"
    );
    // Pages contain stored and missing instances.
    let mut paged = Vec::new();
    let mut cursor = None;
    loop {
        let request = assay_proto::execution::ListInstancesRequest {
            project_id: world.project.clone(),
            test_case_id: a.test_case_id.clone(),
            test_plan_id: a.test_plan_id.clone(),
            test_report_id: a.id.clone(),
            page: Some(assay_proto::Page { limit: Some(2), cursor: cursor.take(), q: None }),
        };
        let page = world.reports().list_instances(world.user.call(request)).await?.into_inner();
        let page: Vec<_> = futures::TryStreamExt::try_collect(page).await?;
        let page: assay_proto::execution::InstanceBatch = page.into_iter().next().unwrap();
        paged.extend(page.parse().unwrap());
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(paged, entries);
    assert_eq!(world.instances(b).await?.len(), 2);
    let unknown = world.instance_path(b, &entries[0].id);
    assert_eq!(instance(&world, unknown).await.unwrap_err().code(), Code::NotFound);

    let canceled = world.start().await?;
    world.cancel(&canceled.id).await?;
    let entries = world.instances(&canceled.test_reports[1]).await?;
    assert!(entries.len() == 2 && entries.iter().all(|e| e.result() == TestResult::Canceled));
    Ok(())
}
