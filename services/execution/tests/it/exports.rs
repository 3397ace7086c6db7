//! Export of executions as JUnit XML and CTRF.

use anyhow::Result;
use assay_proto::{
    TestResult,
    execution::{
        Execution, ExportResultsRequest, GetInstanceRequest, Instance, OpenExecutionInput,
        ReportFormat,
    },
};
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

use crate::world::World;

pub(crate) async fn export(world: &World, id: &str) -> Result<String, Status> {
    export_as(world, id, ReportFormat::Junit).await
}

async fn export_as(world: &World, id: &str, format: ReportFormat) -> Result<String, Status> {
    let request = ExportResultsRequest {
        project_id: world.project.clone(),
        execution_id: id.to_owned(),
        format: format.into(),
    };
    let file = world.results().export_results(world.user.call(request)).await?.into_inner();
    let file: Vec<_> = file.try_collect().await?;
    let bytes = file.iter().flat_map(|part| part.chunk.to_vec()).collect();
    Ok(String::from_utf8(bytes).expect("UTF-8"))
}

/// Properties of a test that exports keep: its name, its result, and its instances.
type Content =
    (String, TestResult, Vec<(TestResult, f64, Option<assay_proto::Timestamp>, Vec<String>)>);

async fn contents(world: &World, execution: &Execution) -> Result<Vec<Content>> {
    let mut contents = Vec::new();
    for report in &execution.test_reports {
        let mut runs = Vec::new();
        for entry in world.instances(report).await? {
            let path: GetInstanceRequest = world.instance_path(report, &entry.id);
            let instance: Instance =
                world.reports().get_instance(world.user.call(path)).await?.into_inner();
            let texts = instance.steps.iter().map(|step| step.actual_result.clone()).collect();
            let time = instance.start_date_time;
            runs.push((instance.result(), instance.duration_in_sec, time, texts));
        }
        contents.push((report.test_case_identifier.clone(), report.result(), runs));
    }
    Ok(contents)
}

#[tokio::test]
async fn instances_that_were_canceled_are_skipped_although_their_report_has_failed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 3)]).await?;
    let execution = world.start().await?;
    let failed = json!([{ "Identifier": "a", "InstanceNr": 1, "Result": "Failed" }]);
    world.report(&execution.id, failed).await?;
    world.cancel(&execution.id).await?;
    let execution = world.execution(&execution.id).await?;
    let [(_, result, runs)] = &contents(&world, &execution).await?[..] else { panic!("one test") };
    assert_eq!(*result, TestResult::Failed);
    let results: Vec<_> = runs.iter().map(|run| run.0).collect();
    assert_eq!(results, [TestResult::Failed, TestResult::Canceled, TestResult::Canceled]);
    let junit = export(&world, &execution.id).await?;
    assert!(junit.contains(r#"failures="1" errors="0" skipped="2""#), "{junit}");
    let lines = export_as(&world, &execution.id, ReportFormat::Lines).await?;
    assert_eq!(lines.matches(r#""Result":"Canceled""#).count(), 2, "{lines}");
    Ok(())
}

#[tokio::test]
async fn exporting_an_uploaded_file_preserves_its_results() -> Result<()> {
    let world = World::new().await?;
    for file in [
        "pytest",
        "nextest",
        "surefire",
        "gtest",
        "jest",
        "phpunit",
        "go-junit-report",
        "gotestsum",
    ] {
        let path =
            format!("{}/../kit/formats/tests/files/junit/{file}.xml", env!("CARGO_MANIFEST_DIR"));
        let uploaded = world.upload(&[&std::fs::read(path)?]).await?;
        let before = contents(&world, &uploaded).await?;

        let again = world.upload(&[export(&world, &uploaded.id).await?.as_bytes()]).await?;

        assert_eq!(contents(&world, &again).await?, before, "{file}");
        assert_eq!(again.result(), uploaded.result());
        let ids = |execution: &Execution| -> Vec<String> {
            execution.test_reports.iter().map(|report| report.test_case_id.clone()).collect()
        };
        assert_eq!(ids(&again), ids(&uploaded), "an export creates no test cases");
    }
    Ok(())
}

#[tokio::test]
async fn a_ctrf_export_has_the_tests_attempts_and_parameters() -> Result<()> {
    let world = World::new().await?;
    for file in ["junit/surefire.xml", "junit/pytest.xml", "playwright-json/results.json"] {
        let path = format!("{}/../kit/formats/tests/files/{file}", env!("CARGO_MANIFEST_DIR"));
        let uploaded = world.upload(&[&std::fs::read(path)?]).await?;

        let report = export_as(&world, &uploaded.id, ReportFormat::Ctrf).await?;

        let again = world.upload(&[report.as_bytes()]).await?;
        let results = |execution: &Execution| -> Vec<(String, TestResult, bool, i32)> {
            let reports = execution.test_reports.iter();
            let result = reports.map(|report| {
                let instances = report.requested_instances_count;
                (report.test_case_id.clone(), report.result(), report.is_flaky, instances)
            });
            result.collect()
        };
        assert_eq!(results(&again), results(&uploaded), "{file}");
    }
    Ok(())
}

#[tokio::test]
async fn exports_preserve_all_results_and_characters() -> Result<()> {
    let world = World::new().await?;
    let names =
        ["TC-1", "a.b", "<&\"'>", "tab\tand\nline", " outer ", "ünï.cödé🙂", "missing", "half"];
    let cases: Vec<_> = names.iter().map(|name| (*name, 1)).collect();
    world.include(&cases[..7]).await?;
    world.include(&[("half", 40)]).await?;
    let execution = world.start().await?;
    let step = |result: &str, text: &str| {
        json!([{ "StepNr": 1, "Result": "Passed" },
        { "StepNr": 2, "Result": result, "ActualResult": text }])
    };
    let results = json!([
        { "Identifier": "TC-1", "Result": "Error", "Steps": step("Failed", "]]> & <b>\r\n\tend") },
        { "Identifier": "a.b", "Result": "Aborted", "DurationInSec": 0.1 },
        { "Identifier": "<&\"'>", "Result": "Failed", "Steps": step("Error", "x") },
        { "Identifier": "tab\tand\nline", "Result": "Canceled", "Steps": step("Passed", "no \"lab\"") },
        { "Identifier": " outer ", "Result": "Passed", "Steps": step("Failed", "at first") },
        { "Identifier": "ünï.cödé🙂", "Result": "Aborted", "Steps": step("Aborted", "\u{1}") },
        { "Identifier": "half", "InstanceNr": 3, "Result": "Failed", "DurationInSec": 1e-3,
          "StartDateTime": "2026-11-20T12:00:00.123456Z" },
    ]);
    world.report(&execution.id, results).await?;
    let execution = world.complete(&execution.id).await?;

    let file = export(&world, &execution.id).await?;
    let again = world.upload(&[file.as_bytes()]).await?;

    let results = |execution: &Execution| -> Vec<(String, TestResult, i32)> {
        let report = |report: &assay_proto::execution::TestReport| {
            // JUnit readers trim names.
            let name = report.test_case_identifier.trim().to_owned();
            (name, report.result(), report.requested_instances_count)
        };
        execution.test_reports.iter().map(report).collect()
    };
    assert_eq!(results(&again), results(&execution));
    assert_eq!(again.result(), execution.result());
    let texts: Vec<_> =
        contents(&world, &again).await?.into_iter().map(|(.., runs)| runs).collect();
    assert_eq!(texts[0][0].3, ["]]> & <b>\r\n\tend"]);
    assert_eq!(texts[3][0].3, ["no \"lab\""]);
    assert_eq!(texts[5][0].3, ["\u{fffd}"]);
    assert_eq!(texts[6][0].3, ["no result was reported"]);
    assert!((texts[7][0].1 - 1e-3).abs() < f64::EPSILON);
    assert_eq!(texts[7].iter().filter(|run| run.0 == TestResult::Aborted).count(), 39);
    assert!(
        file.contains("tests=\"47\" failures=\"2\" errors=\"43\" skipped=\"1\""),
        "{file:.600}"
    );
    Ok(())
}

#[tokio::test]
async fn junit_exports_have_the_attempts_that_failed() -> Result<()> {
    let world = World::new().await?;
    let open = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        ..OpenExecutionInput::default()
    };
    let id = world.open(open).await?.id;
    let results = |results: &[&str]| -> String {
        let test = |(number, result): (usize, &&str)| {
            format!("<testcase name='{number}'>{result}</testcase>")
        };
        let tests: Vec<_> = results.iter().enumerate().map(test).collect();
        format!("<testsuite>{}</testsuite>", tests.concat())
    };
    let (failed, skipped) = ("<failure message='lost'/>", "<skipped/>");
    for attempt in [["", failed, "", failed, failed], ["", "", failed, skipped, failed]] {
        world.add_report(&id, Some("shard"), results(&attempt).as_bytes()).await?;
    }

    let exported = export(&world, &id).await?;

    let elements: Vec<Vec<&str>> = exported
        .lines()
        .filter(|line| line.starts_with("<testcase"))
        .map(|line| {
            let opened = line.split('<').skip(2).filter(|element| !element.starts_with('/'));
            opened.filter_map(|element| element.split([' ', '>', '/']).next()).collect()
        })
        .collect();
    let expected: [&[&str]; 5] = [
        &[],
        &["flakyFailure"],
        &["failure"],
        &["flakyFailure", "skipped"],
        &["failure", "rerunFailure"],
    ];
    assert_eq!(elements, expected, "{exported}");
    Ok(())
}

#[tokio::test]
async fn instances_without_a_result_are_exported_as_skipped() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    let execution = world.start().await?;
    world.report(&execution.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;

    let file = export(&world, &execution.id).await?;

    assert!(file.contains("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"1\""), "{file}");
    assert_eq!(file.matches("<testcase").count(), 2);
    assert_eq!(file.matches("<skipped message=\"not executed yet\"/>").count(), 1);
    Ok(())
}

#[tokio::test]
async fn executions_of_other_projects_and_customers_are_not_exported() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    assert_eq!(export(&world, &world.set).await.unwrap_err().code(), Code::NotFound);
    let stranger = world.stranger().await;
    let request = ExportResultsRequest {
        project_id: world.project.clone(),
        execution_id: execution.id,
        format: 0,
    };
    let hidden = world.results().export_results(stranger.call(request)).await;
    assert_eq!(hidden.map(drop).unwrap_err().code(), Code::NotFound);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_of_many_instances_need_little_memory() -> Result<()> {
    let world = World::new().await?;
    let names: Vec<String> = (0..20).map(|nr| format!("case {nr}")).collect();
    let cases: Vec<(&str, i32)> = names.iter().map(|name| (name.as_str(), 10_000)).collect();
    world.include(&cases).await?;
    let execution = world.start().await?;
    let before = crate::scale::peak_memory()?;
    let request = ExportResultsRequest {
        project_id: world.project.clone(),
        execution_id: execution.id.clone(),
        format: 0,
    };
    let request = world.user.caller.call_within(std::time::Duration::from_mins(2), request);

    let mut file = world.results().export_results(request).await?.into_inner();

    let (mut tests, mut size) = (0, 0);
    while let Some(part) = file.message().await? {
        tests += String::from_utf8_lossy(&part.chunk).matches("</testcase>").count();
        size += part.chunk.len();
    }
    let memory = crate::scale::peak_memory()? - before;
    println!("{size} bytes in {memory} MiB");
    assert!((199_000..=200_000).contains(&tests), "{tests} tests");
    assert!(memory < 16, "{size} bytes took {memory} MiB");
    Ok(())
}
