//! Since when test cases fail or take longer.

use anyhow::Result;
use assay_execution::roll_up;
use assay_proto::{
    Timestamp,
    execution::{Execution, InsightKind, ListInsightsRequest, OpenExecutionInput},
};
use chrono::{Duration, Utc};
use serde_json::{Value, json};

use super::{lasting, list, of, ranking};
use crate::{
    changes::{failed, passed},
    world::World,
};

/// The origin of an execution: where and when tests are run.
#[derive(Clone, Default)]
struct Origin {
    branch: &'static str,
    commit: String,
    days_ago: Option<i64>,
}

/// Runs tests, and adds up their results.
#[expect(clippy::disallowed_methods, reason = "the database compares it with its own time")]
async fn add(world: &World, origin: Origin, results: Value) -> Result<Execution> {
    let ago = |days| Timestamp(Utc::now() - Duration::days(days));
    let input = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        branch: Some(origin.branch.to_owned()),
        commit: Some(origin.commit),
        request_time: origin.days_ago.map(ago),
        ..OpenExecutionInput::default()
    };
    let execution = world.open(input).await?;
    world.report(&execution.id, results).await?;
    let execution = world.complete(&execution.id).await?;
    roll_up(&world.db).await?;
    Ok(execution)
}

fn main(run: usize) -> Origin {
    Origin { branch: "main", commit: format!("commit {run}"), days_ago: None }
}

#[tokio::test]
async fn a_slower_test_is_ranked_with_its_durations_and_commits() -> Result<()> {
    let world = World::new().await?;
    let mut runs = Vec::new();
    for run in 0..15 {
        let of = |fast, slow| if run < 10 { fast } else { slow };
        let results = json!([
            lasting("steady", 9.0),
            lasting("twice", of(2.0, 4.0)),
            lasting("most", of(1.0, 7.0)),
            lasting("repaired", if (5..10).contains(&run) { 5.0 } else { 1.0 }),
        ]);
        runs.push(add(&world, main(run), results).await?);
    }

    let slower = list(&world, of(InsightKind::Slower)).await?;

    let names = slower.iter().map(|insight| insight.test_case_identifier.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["most", "twice"]);
    let twice = &slower[1];
    assert_eq!((twice.duration_before_in_sec, twice.duration_since_in_sec), (Some(2.0), Some(4.0)));
    assert_eq!(twice.since_execution_id.as_ref(), Some(&runs[10].id));
    assert_eq!(twice.since, runs[10].request_time);
    assert_eq!(twice.since_commit.as_deref(), Some("commit 10"));
    assert_eq!(twice.commit_before.as_deref(), Some("commit 9"));
    assert_eq!((twice.runs, twice.failures), (15, 0));
    Ok(())
}

#[tokio::test]
async fn durations_are_compared_among_passes_on_one_branch() -> Result<()> {
    let world = World::new().await?;
    for run in 0..15 {
        let is_late = run >= 10;
        let mut failing = lasting("failing", if is_late { 30.0 } else { 1.0 });
        failing["Result"] = json!(if is_late { "Failed" } else { "Passed" });
        add(&world, main(run), json!([failing])).await?;
        let branch = if is_late { "slow machines" } else { "main" };
        let origin = Origin { branch, ..main(run) };
        add(&world, origin, json!([lasting("elsewhere", if is_late { 5.0 } else { 1.0 })])).await?;
    }

    assert_eq!(ranking(&world, of(InsightKind::Slower)).await?, [""; 0]);
    Ok(())
}

#[tokio::test]
async fn a_test_that_was_slower_before_these_days_is_none() -> Result<()> {
    let world = World::new().await?;
    for run in 0..20 {
        let seconds = if run < 12 { 1.0 } else { 3.0 };
        let days_ago = (run < 16).then_some(40 - i64::from(run));
        let origin = Origin { days_ago, ..main(0) };
        add(&world, origin, json!([lasting("slower", seconds)])).await?;
    }
    let within = async |days| {
        let slower = ListInsightsRequest { days: Some(days), ..of(InsightKind::Slower) };
        ranking(&world, slower).await
    };

    assert_eq!(within(14).await?, [""; 0]);
    assert_eq!(within(30).await?, ["slower"]);
    Ok(())
}

#[tokio::test]
async fn a_newly_failing_test_has_the_commits_between_which_it_began() -> Result<()> {
    let world = World::new().await?;
    let broken = || json!([failed("broken", "lost"), failed("new", "lost")]);
    add(&world, main(0), json!([passed("broken")])).await?;
    add(&world, main(1), json!([passed("broken")])).await?;
    let elsewhere = Origin { branch: "work", ..main(2) };
    add(&world, elsewhere, json!([passed("broken")])).await?;
    let first = add(&world, main(3), broken()).await?;
    add(&world, main(4), broken()).await?;

    let newly = list(&world, of(InsightKind::NewlyFailing)).await?;

    let began = newly.iter().map(|insight| {
        assert_eq!(insight.since_execution_id.as_ref(), Some(&first.id));
        assert_eq!(insight.since_commit.as_deref(), Some("commit 3"));
        (insight.test_case_identifier.as_str(), insight.commit_before.as_deref())
    });
    let began: Vec<_> = began.collect();
    assert_eq!(began, [("new", None), ("broken", Some("commit 1"))]);
    let failed = list(&world, of(InsightKind::MostFailed)).await?;
    assert!(failed.iter().all(|insight| insight.since_execution_id.is_none()));
    Ok(())
}

#[tokio::test]
async fn tests_do_not_begin_to_fail_in_an_outage() -> Result<()> {
    let world = World::new().await?;
    let all = |result: fn(&str) -> Value| -> Vec<Value> {
        (0..12).map(|test| result(&format!("test {test}"))).collect()
    };
    let lost = |test: &str| failed(test, "lost");
    let mut broken = all(passed);
    broken[0] = lost("test 0");
    for (run, results) in [all(passed), broken, all(lost)].into_iter().enumerate() {
        add(&world, main(run), json!(results)).await?;
    }

    assert_eq!(ranking(&world, of(InsightKind::NewlyFailing)).await?, ["test 0"]);
    assert_eq!(ranking(&world, of(InsightKind::MostFailed)).await?.len(), 12);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}
