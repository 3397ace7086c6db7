//! Events about executions.

use std::iter;

use anyhow::Result;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn the_start_progress_and_end_of_an_execution_are_published() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.start().await?;
    world.report(&execution.id, json!([{ "Identifier": "a", "Result": "Passed" }])).await?;
    world.complete(&execution.id).await?;

    let events = world.events().await?;

    let subjects: Vec<&str> = events.iter().map(|(subject, _)| subject.as_str()).collect();
    let expected = [
        "execution.requested",
        "test_report.finished",
        "execution.progressed",
        "test_report.finished",
        "execution.completed",
    ];
    assert_eq!(subjects, expected);
    let (requested, a, progressed, b, completed) =
        (&events[0].1, &events[1].1, &events[2].1, &events[3].1, &events[4].1);
    assert_eq!(requested["Statistic"]["TestCasesPending"], 2);
    assert!(requested["Statistic"]["ExecutionRequestTime"].is_string());
    assert_eq!(progressed["Statistic"]["TestCasesPassed"], 1);
    assert_eq!(completed["Status"], "Completed");
    let revisions = [requested, progressed, completed].map(|event| event["Revision"].clone());
    assert_eq!(revisions, [json!(1), json!(2), json!(3)]);
    assert_eq!(a["Reports"][0]["Result"], "Passed");
    assert_eq!(b["Reports"][0]["Result"], "Aborted");
    assert_eq!(b["Reports"][0]["Revision"], 2);
    assert_eq!(b["Reports"].as_array().map(Vec::len), Some(1));
    for event in [requested, progressed, completed] {
        assert_eq!(event["RequestedById"], world.user.user.to_string());
        assert_eq!(event["TestSetName"], execution.test_set_name);
        assert_eq!(event["FailedTestCases"], json!([]));
    }
    Ok(())
}

#[tokio::test]
async fn the_last_event_of_an_execution_lists_its_first_ten_failures() -> Result<()> {
    let world = World::new().await?;
    let identifiers: Vec<String> = (0..13).map(|number| format!("case-{number}")).collect();
    let cases: Vec<_> = identifiers.iter().map(|identifier| (identifier.as_str(), 1)).collect();
    world.include(&cases).await?;
    let execution = world.start().await?;
    let results: Vec<_> = identifiers
        .iter()
        .zip(["Passed", "Error"].into_iter().chain(iter::repeat("Failed")))
        .map(|(identifier, result)| json!({ "Identifier": identifier, "Result": result }))
        .collect();
    world.report(&execution.id, json!(results)).await?;
    world.complete(&execution.id).await?;

    let events = world.events().await?;
    let failures_in = |action: &str| {
        let mut found = events.iter().filter(|(subject, _)| subject == action);
        &found.next().unwrap_or_else(|| panic!("no event {action}")).1["FailedTestCases"]
    };
    assert_eq!(*failures_in("execution.progressed"), json!([]));
    let failures = failures_in("execution.completed").as_array().cloned().unwrap_or_default();
    let published: Vec<_> =
        failures.iter().map(|case| (&case["Identifier"], &case["Result"])).collect();
    let results = iter::once("Error").chain(iter::repeat("Failed"));
    let expected: Vec<_> = identifiers[1..11].iter().zip(results).collect();
    assert_eq!(json!(published), json!(expected));
    let report = &execution.test_reports[1];
    assert_eq!(failures[0]["Id"], report.test_case_id);
    assert_eq!(failures[0]["Name"], report.test_case_name);
    Ok(())
}
