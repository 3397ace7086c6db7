//! Open executions, which adopt test cases as their results arrive.

mod aliases;
mod attempts;
mod past;

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, TestResult,
    execution::{Execution, OpenExecutionInput, VerdictState},
};
use serde_json::{Value, json};
use tonic::Code;

use crate::{
    judgement::verdict,
    world::{World, fields, reason},
};

/// Returns the project and the test set of the world, with a key.
fn by_name(key: &str) -> OpenExecutionInput {
    OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        key: Some(key.to_owned()),
        ..OpenExecutionInput::default()
    }
}

fn by(reporter: &str, input: OpenExecutionInput) -> OpenExecutionInput {
    OpenExecutionInput { reporter: Some(reporter.to_owned()), ..input }
}

fn passed(identifier: &str) -> Value {
    json!({ "Identifier": identifier, "Result": "Passed" })
}

fn announced(identifier: &str) -> Value {
    json!({ "Identifier": identifier, "Result": "NotExecuted" })
}

/// Returns the number of test cases: all, pending, aborted and passed.
fn counts(execution: &Execution) -> (i32, i32, i32, i32) {
    let statistic = execution.statistic.as_ref().unwrap();
    (
        statistic.test_cases_total,
        statistic.test_cases_pending,
        statistic.test_cases_aborted,
        statistic.test_cases_passed,
    )
}

#[tokio::test]
async fn reporters_with_the_same_key_share_an_execution_that_the_last_one_ends() -> Result<()> {
    let world = World::new().await?;
    let input = OpenExecutionInput { reporters: Some(2), ..by_name("run-7") };

    let (one, other) = tokio::try_join!(
        world.open(by("shard-1", input.clone())),
        world.open(by("shard-2", input))
    )?;

    assert_eq!(one.id, other.id);
    assert_eq!(one.status(), ExecutionStatus::Running);
    let (first, second) = (json!([passed("a"), passed("b")]), json!([passed("b"), passed("c")]));
    let (first, second) =
        tokio::try_join!(world.report(&one.id, first), world.report(&one.id, second))?;
    assert_eq!(first.accepted + second.accepted, 3);
    let running = world.complete_as(&one.id, "shard-1").await?;
    assert_eq!(running.status(), ExecutionStatus::Running);
    let ended = world.complete_as(&one.id, "shard-2").await?;
    assert_eq!(ended.status(), ExecutionStatus::Completed);
    assert_eq!(counts(&ended), (3, 0, 0, 3));
    assert_eq!(world.differences().await?, 0);

    let known = world.open(by_name("run-7")).await?;
    assert_eq!((known.id, known.status), (ended.id, ended.status));
    let late = world.report(&one.id, json!([passed("d")])).await.unwrap_err();
    assert_eq!(reason(&late), "execution_ended");
    assert_ne!(world.open(by_name("run-8")).await?.id, one.id);
    Ok(())
}

#[tokio::test]
async fn announced_tests_without_a_result_are_aborted_after_the_grace_period() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?;
    let tests = json!([announced("a"), announced("b"), announced("a"), announced("c")]);
    let reported = world.report(&execution.id, tests).await?;
    assert_eq!((reported.accepted, reported.duplicates), (3, 1));
    world.report(&execution.id, json!([passed("a")])).await?;
    assert_eq!(counts(&world.execution(&execution.id).await?), (3, 2, 0, 1));
    world.reconcile().await?;
    assert_eq!(world.execution(&execution.id).await?.status(), ExecutionStatus::Running);

    let grace = "select count(*) from execution where deadline between
         now() + make_interval(secs => grace_in_sec - 100)
         and now() + make_interval(secs => grace_in_sec)";
    assert_eq!(world.count(grace).await?, 1);
    world.change("update execution set deadline = now()").await?;
    world.reconcile().await?;

    let ended = world.execution(&execution.id).await?;
    assert_eq!((ended.status(), ended.result()), (ExecutionStatus::Completed, TestResult::Aborted));
    assert_eq!(counts(&ended), (3, 0, 2, 1));
    assert_eq!(world.count("select count(*) from instance where result = 'Aborted'").await?, 2);
    let instances = world.instances(&ended.test_reports[1]).await?;
    assert_eq!(instances.len(), 1);
    assert_eq!(instances[0].result(), TestResult::Aborted);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_execution_that_lacks_a_reporter_at_the_end_of_its_grace_period_does_not_pass()
-> Result<()> {
    for (expected, completed, missing) in
        [(Some(3), true, "2 reporters"), (None, false, "1 reporter")]
    {
        let world = World::new().await?;
        let input = OpenExecutionInput { reporters: expected, ..by_name("run-7") };
        let execution = world.open(by("shard-1", input)).await?;
        world.report(&execution.id, json!([passed("a")])).await?;
        if completed {
            world.complete_as(&execution.id, "shard-1").await?;
        }
        world.change("update execution set deadline = now()").await?;
        world.reconcile().await?;

        let ended = world.execution(&execution.id).await?;
        assert_eq!(
            (ended.status(), ended.result()),
            (ExecutionStatus::Completed, TestResult::Aborted)
        );
        let verdict = verdict(&world, &ended).await?;
        assert_eq!(verdict.state(), VerdictState::Failed);
        assert_eq!(verdict.rules[0].message, format!("{missing} did not complete"));
        assert_eq!(world.differences().await?, 0);
    }

    // Somebody who completes the execution says that it is complete.
    let world = World::new().await?;
    let execution = world.open(by("shard-1", by_name("run-7"))).await?;
    world.report(&execution.id, json!([passed("a")])).await?;
    let ended = world.complete(&execution.id).await?;
    assert_eq!(verdict(&world, &ended).await?.state(), VerdictState::Passed);
    Ok(())
}

#[tokio::test]
async fn a_result_begins_the_grace_period_again() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?;
    world.change("update execution set deadline = now()").await?;
    world.report(&execution.id, json!([passed("a")])).await?;
    world.reconcile().await?;
    assert_eq!(world.execution(&execution.id).await?.status(), ExecutionStatus::Running);

    world.change("update execution set deadline = now()").await?;
    world.open(by("shard-1", by_name("run-7"))).await?;
    world.reconcile().await?;
    assert_eq!(world.execution(&execution.id).await?.status(), ExecutionStatus::Running);
    Ok(())
}

#[tokio::test]
async fn missing_projects_and_test_sets_are_created_once_by_those_who_may() -> Result<()> {
    let world = World::new().await?;
    let input = |key: &str| OpenExecutionInput {
        project: "New".to_owned(),
        test_set: "Also new".to_owned(),
        ..by_name(key)
    };
    let tester = world.colleague("Read, Execute").await;
    let refused = world.open_as(&tester, input("a")).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(fields(&refused), ["Project"]);

    let (one, other) = tokio::try_join!(world.open(input("a")), world.open(input("b")))?;

    assert_eq!((&one.project_id, &one.test_set_id), (&other.project_id, &other.test_set_id));
    assert_eq!(one.test_set_name, "Also new");
    let joined = world.open_as(&tester, input("a")).await?;
    assert_eq!(joined.id, one.id);
    Ok(())
}

#[tokio::test]
async fn instances_differ_by_reporter_and_parameters() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?;
    let result = |reporter: &str, variant: &str, result: &str| {
        json!({
            "Identifier": "pays", "Name": "Pays by card", "Result": result,
            "Reporter": reporter, "Variant": variant,
        })
    };
    world.report(&execution.id, json!([result("linux", "Project=firefox", "Passed")])).await?;
    let more = json!([
        result("linux", "Project=webkit", "Failed"),
        result("linux", "Project=firefox", "Failed"),
        result("mac", "Project=firefox", "Passed"),
    ]);
    let reported = world.report(&execution.id, more).await?;
    assert_eq!((reported.accepted, reported.duplicates), (2, 1));

    let ended = world.complete(&execution.id).await?;
    let report = &ended.test_reports[0];
    assert_eq!(
        (report.test_case_name.as_str(), report.result()),
        ("Pays by card", TestResult::Failed)
    );
    let instances = world.instances(report).await?;
    let named: Vec<_> = instances
        .iter()
        .map(|one| (one.instance_nr, one.reporter.as_str(), one.variant.as_str(), one.result()))
        .collect();
    assert_eq!(
        named,
        [
            (1, "linux", "Project=firefox", TestResult::Passed),
            (2, "linux", "Project=webkit", TestResult::Failed),
            (3, "mac", "Project=firefox", TestResult::Passed),
        ]
    );
    assert_eq!(counts(&ended), (1, 0, 0, 0));
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn the_origin_of_the_software_is_in_executions_and_events() -> Result<()> {
    let world = World::new().await?;
    let origin = OpenExecutionInput {
        branch: Some("main".to_owned()),
        commit: Some("3f2c1d0".to_owned()),
        build: Some("1205".to_owned()),
        ci_url: Some("https://ci.example.com/runs/1205".to_owned()),
        ..by_name("run-7")
    };
    let invalid = OpenExecutionInput { ci_url: Some("javascript:x".to_owned()), ..origin.clone() };
    assert_eq!(fields(&world.open(invalid).await.unwrap_err()), ["CiUrl"]);

    let execution = world.open(origin).await?;

    assert_eq!(execution.branch.as_deref(), Some("main"));
    assert_eq!(execution.ci_url.as_deref(), Some("https://ci.example.com/runs/1205"));
    let events = world.events().await?;
    let (subject, data) = &events[0];
    assert_eq!(subject, "execution.requested");
    assert_eq!((&data["Branch"], &data["Commit"]), (&json!("main"), &json!("3f2c1d0")));
    Ok(())
}

#[tokio::test]
async fn executions_with_fixed_test_cases_take_neither_other_tests_nor_reporters() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let results = json!([
        passed("b"),
        announced("a"),
        { "Identifier": "a", "Result": "Passed", "Reporter": "x", "Variant": "y" },
    ]);
    let refused = world.report(&execution.id, results).await.unwrap_err();
    assert_eq!(fields(&refused), ["0/Identifier", "1/Result", "2/Reporter", "2/Variant"]);
    let refused = world.complete_as(&execution.id, "x").await.unwrap_err();
    assert_eq!(reason(&refused), "not_open");
    Ok(())
}
