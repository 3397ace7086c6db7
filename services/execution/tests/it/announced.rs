//! Events that say what follows from results: the first failure, the verdict, work that nobody takes.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use assay_execution::{publish_expired, publish_waiting};
use assay_proto::{
    TestResult,
    execution::{CreateKnownFailureInput, MuteInput, OpenExecutionInput, ReviewInput},
};
use serde_json::{Value, json};

use crate::{
    changes::{failed, passed, reports, run},
    judgement::verdict,
    known_failures::{accepted, create, in_days, review},
    world::World,
};

/// Returns the data of the events with this name, in order.
async fn events(world: &World, name: &str) -> Result<Vec<Value>> {
    let events = world.events().await?.into_iter();
    Ok(events.filter(|(one, _)| one == name).map(|(_, data)| data).collect())
}

#[tokio::test]
async fn the_first_failure_of_a_running_execution_is_published_once() -> Result<()> {
    let world = World::new().await?;
    let first = run(&world, "main", json!([failed("known", "refused"), passed("other")])).await?;
    let known = reports(&world, &first).await?.remove(0);
    let input = CreateKnownFailureInput {
        fingerprint: known.fingerprint,
        every_case: true,
        muted_until: Some(in_days(30)),
        ..CreateKnownFailureInput::default()
    };
    create(&world, input).await?;

    let open = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        branch: Some("main".to_owned()),
        ..OpenExecutionInput::default()
    };
    let execution = world.open(open).await?;
    let results = [
        failed("known", "refused"),
        passed("other"),
        failed("new", "lost"),
        failed("newer", "gone"),
    ];
    for result in results {
        world.report(&execution.id, json!([result])).await?;
    }
    world.complete(&execution.id).await?;
    let progressed = events(&world, "execution.progressed").await?;
    let of_execution = progressed.iter().filter(|data| data["ExecutionId"] == execution.id);
    let firsts: Vec<_> =
        of_execution.map(|data| &data["FirstFailure"]).filter(|first| !first.is_null()).collect();
    let [first] = firsts[..] else { panic!("{firsts:?}") };
    assert_eq!((&first["Identifier"], &first["Result"]), (&json!("new"), &json!("Failed")));
    Ok(())
}

#[tokio::test]
async fn the_end_of_an_execution_has_the_verdict_of_the_interface_and_comes_last() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a"), failed("b", "lost"), passed("c")])).await?;
    let results = json!([failed("a", "gone"), passed("b"), passed("c"), passed("d")]);
    let execution = run(&world, "main", results).await?;
    let ended = events(&world, "execution.completed").await?.pop().context("an end")?;
    let expected = serde_json::to_value(verdict(&world, &execution).await?)?;
    assert_eq!(ended["Verdict"], expected["State"]);
    for part in ["Changes", "Rules", "Statistic"] {
        assert_eq!(ended[part], expected[part], "{part}");
    }
    assert_eq!((&ended["Changes"]["New"], &ended["Changes"]["Fixed"]), (&json!(1), &json!(1)));
    assert_eq!(ended["Actor"]["UserId"], world.user.user.to_string());
    assert_eq!(ended["Branch"], "main");

    let names: Vec<String> = world.events().await?.into_iter().map(|(name, _)| name).collect();
    let last = |name: &str| names.iter().rposition(|one| one == name);
    assert!(last("execution.completed") > last("test_report.finished"));
    let finished = events(&world, "test_report.finished").await?;
    let identifiers = finished.iter().flat_map(|data| data["Reports"].as_array().unwrap());
    let identifiers: Vec<_> =
        identifiers.map(|report| report["TestCaseIdentifier"].as_str().unwrap()).collect();
    assert!(identifiers.contains(&"d"), "{identifiers:?}");
    Ok(())
}

/// Returns a result of a test with these owners.
pub(crate) fn owned(mut result: Value, owners: &[&str]) -> Value {
    let labels = owners.iter().map(|owner| json!({ "Name": "Owner", "Value": owner }));
    result["Labels"] = labels.collect();
    result
}

#[tokio::test]
async fn events_name_the_owners_of_tests_that_fail_or_are_fixed() -> Result<()> {
    let world = World::new().await?;
    let fails = owned(failed("a", "lost"), &["Checkout team", "Ada", "Ada"]);
    let first = run(&world, "main", json!([fails, owned(passed("b"), &["Depot team"])])).await?;
    let passes = owned(passed("a"), &["Checkout team", "Ada"]);
    for _ in 0..2 {
        run(&world, "main", json!([passes, passed("b")])).await?;
    }
    let owners = json!(["Ada", "Checkout team"]);
    let ended = events(&world, "execution.completed").await?;
    let of_ends: Vec<_> = ended.iter().map(|data| &data["Owners"]).collect();
    assert_eq!(of_ends, [&owners, &owners, &json!([])], "it fails, is fixed, and passes again");
    assert_eq!(ended[0]["FailedTestCases"][0]["Owners"], owners);

    // Of reports that have just arrived, and of stored ones.
    review(&world, &first, ReviewInput { result: Some(TestResult::Failed.into()), ..accepted() })
        .await?;
    for name in ["test_report.finished", "test_report.reviewed"] {
        let of_first = events(&world, name).await?.remove(0);
        let reports = of_first["Reports"].as_array().unwrap().iter();
        let mut failing = reports.filter(|report| report["TestCaseIdentifier"] == "a");
        assert_eq!(failing.next().context("a report")?["Owners"], owners, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn stored_owners_are_those_of_the_results() -> Result<()> {
    const NAMES: [&str; 4] = ["owner", "OWNER", "tag", "öwner"];
    const VALUES: [&str; 8] = ["Ada", "ada", "", "Zoë", "Ä team", "😀", "a, b", "\\ \"q\" {x}"];
    let world = World::new().await?;
    let test = |number: usize| {
        let labels = (0..number % 17).map(|at| {
            let name = NAMES[(number + at * at) % NAMES.len()];
            let value = VALUES[(number / 2 + at * 3) % VALUES.len()];
            json!({ "Name": name, "Value": if at > 7 { format!("{value}2") } else { value.to_owned() } })
        });
        let mut result = failed(&format!("t{number}"), "lost");
        result["Labels"] = labels.collect();
        result
    };
    let results = (0..40).map(test).collect::<Value>();
    let execution = run(&world, "main", results).await?;
    let stored = || async {
        let stored = "select test_case_identifier, owners from test_report";
        let stored = sqlx::query_as::<_, (String, Vec<String>)>(stored).fetch_all(&world.db);
        anyhow::Ok(stored.await?.into_iter().collect::<BTreeMap<_, _>>())
    };
    let announced = events(&world, "test_report.finished").await?;
    let reports = announced.iter().flat_map(|data| data["Reports"].as_array().unwrap());
    let announced: BTreeMap<String, Vec<String>> = reports
        .map(|report| {
            let owners = serde_json::from_value(report["Owners"].clone()).unwrap();
            (report["TestCaseIdentifier"].as_str().unwrap().to_owned(), owners)
        })
        .collect();
    assert_eq!(announced.len(), 40);
    assert!(announced.values().any(Vec::is_empty));
    assert!(announced.values().any(|owners| owners.len() == 10), "{announced:?}");
    assert_eq!(stored().await?, announced);

    // A later change of a report leaves them as they are.
    review(
        &world,
        &execution,
        ReviewInput { result: Some(TestResult::Failed.into()), ..accepted() },
    )
    .await?;
    assert_eq!(stored().await?, announced);
    Ok(())
}

#[tokio::test]
async fn work_that_no_engine_takes_is_published_once() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.dispatch().await?;
    publish_waiting(&world.db, 300).await?;
    assert!(events(&world, "execution.waiting").await?.is_empty(), "it has just been requested");
    world.change("update execution set request_time = now() - interval '6 minutes'").await?;
    for _ in 0..2 {
        publish_waiting(&world.db, 300).await?;
    }
    let [waiting] = &events(&world, "execution.waiting").await?[..] else { panic!("one event") };
    assert_eq!(
        (&waiting["ExecutionId"], &waiting["Status"]),
        (&json!(execution.id), &json!("Queued"))
    );
    assert_eq!(waiting["Actor"]["Kind"], "Program");
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_known_failure_is_announced_a_day_before() -> Result<()> {
    let world = World::new().await?;
    let execution = run(&world, "main", json!([failed("a", "lost")])).await?;
    let entry = reports(&world, &execution).await?.remove(0);
    let input = CreateKnownFailureInput {
        fingerprint: entry.fingerprint,
        every_case: true,
        muted_until: Some(in_days(30)),
        ..CreateKnownFailureInput::default()
    };
    let known = create(&world, input).await?;
    publish_expired(&world.db).await?;
    assert!(events(&world, "known_failure.expiring").await?.is_empty(), "it ends in a month");
    world.change("update known_failure set muted_until = now() + interval '23 hours'").await?;
    for _ in 0..2 {
        publish_expired(&world.db).await?;
    }
    let [expiring] = &events(&world, "known_failure.expiring").await?[..] else {
        panic!("one event")
    };
    assert_eq!(
        (&expiring["SourceId"], &expiring["ProjectId"]),
        (&json!(known.id), &json!(world.project))
    );

    let longer = MuteInput { every_case: true, muted_until: Some(in_days(20)) };
    let result = Some(TestResult::Failed.into());
    let longer = ReviewInput { result, known: Some(longer), ..accepted() };
    review(&world, &execution, longer).await?;
    world.change("update known_failure set muted_until = now() + interval '23 hours'").await?;
    publish_expired(&world.db).await?;
    assert_eq!(
        events(&world, "known_failure.expiring").await?.len(),
        2,
        "a review has prolonged it"
    );
    Ok(())
}
