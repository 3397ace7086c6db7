//! Trends: whether an execution is worse or better than the one before it in its series.

use anyhow::Result;
use assay_proto::execution::{Execution, OpenExecutionInput};
use serde_json::{Value, json};

use crate::{
    changes::{failed, passed, run},
    world::World,
};

async fn open(world: &World, branch: &str) -> Result<Execution> {
    let input = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        branch: Some(branch.to_owned()),
        ..OpenExecutionInput::default()
    };
    Ok(world.open(input).await?)
}

/// Returns the trends of all executions that have ended, in the order of their ends.
async fn trends(world: &World) -> Result<Vec<Value>> {
    let is_end = |name: &str| matches!(name, "execution.completed" | "execution.canceled");
    let events = world.events().await?.into_iter();
    Ok(events.filter(|(name, _)| is_end(name)).map(|(_, data)| data["Trend"].clone()).collect())
}

#[tokio::test]
async fn the_end_of_an_execution_says_whether_it_is_worse_than_the_one_before() -> Result<()> {
    let world = World::new().await?;
    let mut expected = Vec::new();
    for (results, trend) in [
        (json!([passed("a"), passed("b")]), "Same"),
        (json!([failed("a", "lost"), passed("b")]), "Worse"),
        (json!([failed("a", "lost"), passed("b")]), "Same"),
        (json!([failed("a", "lost"), failed("b", "gone")]), "Worse"),
    ] {
        run(&world, "main", results).await?;
        expected.push(json!(trend));
        assert_eq!(trends(&world).await?, expected);
    }

    // Neither of these says anything, so they are passed over.
    let canceled = open(&world, "main").await?;
    world.report(&canceled.id, json!([passed("a")])).await?;
    world.cancel(&canceled.id).await?;
    let empty = open(&world, "main").await?;
    world.complete(&empty.id).await?;
    expected.extend([Value::Null, Value::Null]);
    run(&world, "main", json!([passed("a"), passed("b")])).await?;
    expected.push(json!("Better"));
    assert_eq!(trends(&world).await?, expected);
    Ok(())
}

#[tokio::test]
async fn an_execution_has_a_trend_if_it_was_not_canceled_and_a_test_case_ran() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a")])).await?;
    let mut expected = vec![json!("Same")];
    for (result, is_canceled, trend) in [
        ("Passed", false, json!("Same")),
        ("Failed", false, json!("Worse")),
        ("Error", false, json!("Same")),
        ("Aborted", false, json!("Same")),
        ("Canceled", false, Value::Null),
        ("Passed", true, Value::Null),
        ("Failed", true, Value::Null),
        // Those that have none are passed over: the last one before has failures.
        ("Passed", false, json!("Better")),
    ] {
        let execution = open(&world, "main").await?;
        world.report(&execution.id, json!([{ "Identifier": "a", "Result": result }])).await?;
        if is_canceled {
            world.cancel(&execution.id).await?;
        } else {
            world.complete(&execution.id).await?;
        }
        expected.push(trend);
        let found = trends(&world).await?;
        assert_eq!(
            found.last().map(Value::is_null),
            expected.last().map(Value::is_null),
            "{result} {found:?}"
        );
    }
    assert_eq!(trends(&world).await?.last(), Some(&json!("Better")));
    Ok(())
}

#[tokio::test]
async fn each_branch_has_a_trend_of_its_own_and_begins_with_its_verdict() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a"), passed("b")])).await?;
    run(&world, "main", json!([failed("a", "lost"), passed("b")])).await?;
    // A failure of the default branch does not count as new on another one.
    run(&world, "feature", json!([failed("a", "lost"), passed("b")])).await?;
    run(&world, "broken", json!([failed("a", "lost"), failed("b", "gone")])).await?;
    run(&world, "feature", json!([passed("a"), passed("b")])).await?;
    run(&world, "main", json!([passed("a"), passed("b")])).await?;
    let expected = ["Same", "Worse", "Same", "Worse", "Better", "Better"];
    assert_eq!(json!(trends(&world).await?), json!(expected));
    Ok(())
}
