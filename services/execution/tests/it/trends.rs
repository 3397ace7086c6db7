//! Trends: whether an execution is worse or better than the one before it in its series.

use anyhow::{Context, Result};
use assay_proto::execution::{Execution, OpenExecutionInput};
use serde_json::{Map, Value, json};

use crate::{
    announced::owned,
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

/// Returns the data of the events of all executions that have ended, in their order.
async fn ends(world: &World) -> Result<Vec<Value>> {
    let is_end = |name: &str| matches!(name, "execution.completed" | "execution.canceled");
    let events = world.events().await?.into_iter();
    Ok(events.filter(|(name, _)| is_end(name)).map(|(_, data)| data).collect())
}

/// Returns the trends of all executions that have ended, in the order of their ends.
async fn trends(world: &World) -> Result<Vec<Value>> {
    Ok(ends(world).await?.into_iter().map(|data| data["Trend"].clone()).collect())
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

#[tokio::test]
async fn each_owner_of_failing_or_fixed_tests_has_a_trend_of_its_own() -> Result<()> {
    let world = World::new().await?;
    let ada = |result| owned(result, &["Ada"]);
    let depot = |result| owned(result, &["Depot", "Night shift"]);
    let aborted = json!({ "Identifier": "d", "Result": "Aborted" });
    for (of_ada, of_depot, trend, expected) in [
        (failed("a", "lost"), passed("d"), "Worse", json!({ "Ada": "Worse" })),
        (
            failed("a", "lost"),
            failed("d", "gone"),
            "Worse",
            json!({ "Ada": "Same", "Depot": "Worse", "Night shift": "Worse" }),
        ),
        (
            failed("a", "lost"),
            passed("d"),
            "Same",
            json!({ "Ada": "Same", "Depot": "Better", "Night shift": "Better" }),
        ),
        (passed("a"), passed("d"), "Better", json!({ "Ada": "Better" })),
        (passed("a"), passed("d"), "Same", json!({})),
        // An aborted test has no change.
        (
            passed("a"),
            aborted.clone(),
            "Worse",
            json!({ "Depot": "Worse", "Night shift": "Worse" }),
        ),
        (passed("a"), aborted, "Same", json!({ "Depot": "Same", "Night shift": "Same" })),
    ] {
        run(&world, "main", json!([ada(of_ada), depot(of_depot)])).await?;
        let ended = ends(&world).await?.pop().context("an end")?;
        let trends = ended["OwnerTrends"].as_array().context("a list")?.iter();
        let owners: Vec<_> = trends.clone().map(|one| &one["Owner"]).collect();
        assert_eq!(json!(owners), ended["Owners"]);
        let found: Map<_, _> = trends
            .map(|one| (one["Owner"].as_str().unwrap().to_owned(), one["Trend"].clone()))
            .collect();
        assert_eq!((&ended["Trend"], Value::Object(found)), (&json!(trend), expected));
    }

    // Another spelling is the same owner.
    run(&world, "main", json!([ada(failed("a", "lost")), depot(passed("d"))])).await?;
    let spelled = owned(failed("a", "lost"), &["ada"]);
    run(&world, "main", json!([spelled, owned(failed("d", "gone"), &["ADA"])])).await?;
    let ended = ends(&world).await?.pop().context("an end")?;
    assert_eq!(ended["OwnerTrends"], json!([{ "Owner": "ADA", "Trend": "Worse" }]));
    run(&world, "main", json!([owned(failed("a", "lost"), &["ADA"]), passed("d")])).await?;
    let ended = ends(&world).await?.pop().context("an end")?;
    assert_eq!(ended["OwnerTrends"], json!([{ "Owner": "ADA", "Trend": "Same" }]));
    run(&world, "main", json!([ada(passed("a")), depot(passed("d"))])).await?;

    // Known failures of the default branch do not count as new on the first run of another one.
    run(&world, "main", json!([ada(failed("a", "lost")), depot(passed("d"))])).await?;
    run(&world, "feature", json!([ada(failed("a", "lost")), depot(passed("d"))])).await?;
    let ended = ends(&world).await?.pop().context("an end")?;
    assert_eq!(ended["OwnerTrends"], json!([{ "Owner": "Ada", "Trend": "Same" }]));

    // A canceled execution says nothing.
    let canceled = open(&world, "main").await?;
    world.report(&canceled.id, json!([ada(failed("a", "other"))])).await?;
    world.cancel(&canceled.id).await?;
    let ended = ends(&world).await?.pop().context("an end")?;
    assert_eq!((&ended["Owners"], &ended["OwnerTrends"]), (&json!(["Ada"]), &json!([])));
    Ok(())
}
