//! Runs of TestRail, whose clients know records by numbers.

use anyhow::Result;
use assay_execution::purge_deleted;
use assay_proto::{
    TestResult,
    execution::{
        AssignNumbersRequest, Instance, NumberedKind, NumberedRecord, UpdateDetailsRequest,
    },
};
use futures::future::{join_all, try_join_all};
use serde_json::json;
use tonic::{Code, Status};

use crate::world::{World, reason};

/// Returns the first instance of a test case.
async fn instance(world: &World, execution: &str, case: &str) -> Result<Instance> {
    let execution = world.execution(execution).await?;
    let reports = &execution.test_reports;
    let report = reports.iter().find(|report| report.test_case_identifier == case).unwrap();
    let first = world.instances(report).await?.remove(0);
    let path = world.instance_path(report, &first.id);
    Ok(world.reports().get_instance(world.user.call(path)).await?.into_inner())
}

#[tokio::test]
async fn records_keep_their_numbers() -> Result<()> {
    let world = World::new().await?;
    let first = world.numbers(NumberedKind::Section, &["a", "b", "a"]).await?;
    assert_eq!(first, [1, 2, 1]);
    assert_eq!(world.numbers(NumberedKind::Section, &["c", "b"]).await?, [3, 2]);
    let found = world.records(&world.user, NumberedKind::Section, vec![3, 2, 9]).await?;
    let found: Vec<_> = found.iter().map(|record| (record.number, &*record.key)).collect();
    assert_eq!(found, [(2, "b"), (3, "c")]);
    Ok(())
}

#[tokio::test]
async fn the_details_of_a_record_have_a_limit_and_are_returned_if_they_are_wanted() -> Result<()> {
    let world = World::new().await?;
    let assign = async |kind: NumberedKind, bytes: usize, with_details| {
        let record = NumberedRecord {
            scope_id: world.project.clone(),
            key: "a".to_owned(),
            details: json!({ "name": "x".repeat(bytes) }).to_string(),
            ..NumberedRecord::default()
        };
        let project_id = Some(world.project.clone());
        let records = vec![record];
        let request = AssignNumbersRequest { project_id, kind: kind.into(), records, with_details };
        let assigned = world.runs().assign_numbers(world.user.call(request)).await?;
        Ok::<_, Status>(assigned.into_inner().records.remove(0))
    };
    for (kind, most) in [(NumberedKind::Section, 8 << 10), (NumberedKind::Run, 2 << 20)] {
        let refused = assign(kind, most, true).await.unwrap_err();
        assert_eq!(reason(&refused), "too_large", "{kind:?}");
        let number = assign(kind, most / 2, false).await?.number;
        let details = json!({ "name": "x".repeat(most) }).to_string();
        let request = UpdateDetailsRequest { kind: kind.into(), number, details };
        let refused = world.runs().update_details(world.user.call(request)).await.unwrap_err();
        assert_eq!(reason(&refused), "too_large", "{kind:?}");
        assert!(assign(kind, 0, true).await?.details.len() > most / 2, "{kind:?}");
        assert_eq!(assign(kind, 0, false).await?.details, "", "{kind:?}");
    }
    Ok(())
}

#[tokio::test]
async fn concurrent_clients_get_the_same_numbers() -> Result<()> {
    let world = World::new().await?;
    let keys: Vec<String> = (0..50).map(|number| format!("case {number}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let clients = (0..10).map(|_| world.numbers(NumberedKind::TestCase, &keys));
    let numbers = try_join_all(clients).await?;
    assert!(numbers.iter().all(|other| *other == numbers[0]));
    assert_eq!(world.count("select count(distinct number) from number").await?, 50);
    Ok(())
}

#[tokio::test]
async fn test_cases_of_testrail_have_the_numbers_in_their_identifiers() -> Result<()> {
    let world = World::new().await?;
    let numbers = world.numbers(NumberedKind::TestCase, &["C101", "pays", "C7"]).await?;
    assert_eq!(numbers, [101, 1_000_000_000, 7]);
    Ok(())
}

#[tokio::test]
async fn numbers_of_other_customers_are_unknown() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1)]).await?;
    let case = world.numbers(NumberedKind::TestCase, &["pays"]).await?[0];
    let (run, _) = world.open_run(&json!({})).await?;
    let results = json!([{ "case_id": case, "status_id": 1 }]);
    let result = world.add_run_results(run, &results).await?[0].number;

    let stranger = world.stranger().await;
    for (kind, number) in
        [(NumberedKind::TestCase, case), (NumberedKind::Run, run), (NumberedKind::Result, result)]
    {
        assert!(world.records(&stranger, kind, vec![number]).await?.is_empty(), "{kind:?}");
    }
    let refused = world.add_run_results_as(&stranger, run, &results).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let refused = world.attach(&stranger, result, "shot.png", "x").await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn results_become_instances_with_numbers_of_their_own() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1), ("refunds", 1)]).await?;
    let numbers = world.numbers(NumberedKind::TestCase, &["pays", "refunds"]).await?;
    let (run, id) = world.open_run(&json!({})).await?;
    let results = json!([
        {
            "case_id": numbers[0], "status_id": 5, "elapsed": "1m 5s",
            "comment": "Message: it broke\nText: trace",
            "custom_step_results": [{ "content": "Open", "status_id": 1 }],
        },
        { "case_id": numbers[1], "status_id": 4, "comment": "later" },
    ]);
    let added = world.add_run_results(run, &results).await?;

    let cases: Vec<_> = added.iter().map(|result| (result.test_case, result.status)).collect();
    assert_eq!(cases, [(numbers[0], 5), (numbers[1], 4)]);
    let failed = instance(&world, &id, "pays").await?;
    assert_eq!((failed.result(), failed.duration_in_sec), (TestResult::Failed, 65.0));
    let steps = failed.steps.iter().map(|step| (&*step.test_input, &*step.actual_result));
    assert_eq!(steps.collect::<Vec<_>>(), [("Open", ""), ("pays", "it broke\n\ntrace")]);
    assert_eq!(instance(&world, &id, "refunds").await?.result(), TestResult::Canceled);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_repeated_request_changes_nothing_and_a_further_result_is_an_attempt() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1)]).await?;
    let case = world.numbers(NumberedKind::TestCase, &["pays"]).await?[0];
    let (run, id) = world.open_run(&json!({})).await?;
    let failed = json!([{ "case_id": case, "status_id": 5, "comment": "broken" }]);
    let requests = (0..10).map(|_| world.add_run_results(run, &failed));
    let answers = try_join_all(requests).await?;
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
    assert_eq!(instance(&world, &id, "pays").await?.attempt, 1);

    let passed = json!([{ "case_id": case, "status_id": 1 }]);
    let second = world.add_run_results(run, &passed).await?;
    assert_ne!(second[0].number, answers[0][0].number);
    let last = instance(&world, &id, "pays").await?;
    assert_eq!((last.attempt, last.result()), (2, TestResult::Passed));
    world.complete(&id).await?;
    assert_eq!(world.add_run_results(run, &passed).await?, second, "also after the end");
    let late = json!([{ "case_id": case, "status_id": 4 }]);
    let refused = world.add_run_results(run, &late).await.unwrap_err();
    assert_eq!(reason(&refused), "execution_ended");
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_equal_result_is_a_new_one_unless_it_follows_the_last_one_soon() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1)]).await?;
    let case = world.numbers(NumberedKind::TestCase, &["pays"]).await?[0];
    let (run, id) = world.open_run(&json!({})).await?;
    let add = async |status| {
        let results = json!([{ "case_id": case, "status_id": status }]);
        Ok::<_, anyhow::Error>(world.add_run_results(run, &results).await?[0].number)
    };
    assert_eq!([add(5).await?, add(5).await?, add(1).await?, add(5).await?], [1, 1, 2, 3]);
    assert_eq!([add(5).await?, add(1).await?, add(1).await?], [3, 4, 4]);
    world.change("update upload set received_at = received_at - interval '2 minutes'").await?;
    assert_eq!([add(1).await?, add(1).await?], [5, 5], "not a repetition after a while");
    world.complete(&id).await?;
    let pays = instance(&world, &id, "pays").await?;
    assert_eq!(pays.attempt, 5);
    Ok(())
}

#[tokio::test]
async fn results_under_several_numbers_of_a_test_case_are_attempts_at_one_instance() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1)]).await?;
    let case = world.numbers(NumberedKind::TestCase, &["pays"]).await?[0];
    let (run, id) = world.open_run(&json!({})).await?;
    let failed = json!([{ "case_id": case, "status_id": 5 }]);
    world.add_run_results(run, &failed).await?;
    let test_case = world.execution(&id).await?.test_reports[0].test_case_id.clone();
    world.alias(&test_case, "C101").await?;

    let passed = json!([{ "case_id": 101, "status_id": 1 }]);
    let second = world.add_run_results(run, &passed).await?;
    assert_eq!(world.add_run_results(run, &passed).await?, second, "a repeated request");
    let both = json!([{ "case_id": 101, "status_id": 5 }, { "case_id": case, "status_id": 1 }]);
    world.add_run_results(run, &both).await?;
    let pays = instance(&world, &id, "pays").await?;
    assert_eq!((pays.attempt, pays.result()), (4, TestResult::Passed));
    assert_eq!(world.execution(&id).await?.test_reports.len(), 1);

    let (run, id) = world.open_run(&json!({})).await?;
    world.add_run_results(run, &passed).await?;
    world.add_run_results(run, &failed).await?;
    let last = instance(&world, &id, "C101").await?;
    assert_eq!((last.attempt, last.result()), (2, TestResult::Failed));
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn files_are_linked_from_the_attempt_of_their_result() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1)]).await?;
    let case = world.numbers(NumberedKind::TestCase, &["pays"]).await?[0];
    let (run, id) = world.open_run(&json!({})).await?;
    let results = json!([
        { "case_id": case, "status_id": 5, "comment": "broken" },
        { "case_id": case, "status_id": 1 },
    ]);
    let added = world.add_run_results(run, &results).await?;
    let (user, first, last) = (&world.user, added[0].number, added[1].number);
    let (one, same, other) = tokio::try_join!(
        world.attach(user, first, "shot.png", "one"),
        world.attach(user, first, "shot.png", "one"),
        world.attach(user, first, "shot.png", "other"),
    )?;
    assert_eq!(one, same);
    assert_ne!(one, other);
    world.complete(&id).await?;
    world.attach(user, last, "trace.txt", "late").await?;

    let instance = instance(&world, &id, "pays").await?;
    let links = |step: &assay_proto::execution::Step| step.screenshots.len();
    assert_eq!(instance.steps.iter().map(links).collect::<Vec<_>>(), [1]);
    assert!(instance.steps[0].screenshots[0].contains("trace.txt?"), "{instance:?}");
    let earlier = &instance.attempts[0];
    assert_eq!(earlier.steps.iter().map(links).collect::<Vec<_>>(), [2]);
    assert_eq!(world.count("select count(*) from artifact").await?, 3);
    Ok(())
}

#[tokio::test]
async fn results_of_unknown_test_cases_are_refused() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1), ("C101", 1)]).await?;
    let case = world.numbers(NumberedKind::TestCase, &["pays"]).await?[0];
    let (run, id) = world.open_run(&json!({ "include_all": true })).await?;
    let (limited, _) = world.open_run(&json!({ "include_all": false, "case_ids": [101] })).await?;
    for (run, results) in [
        (run, json!([{ "case_id": case, "status_id": 1 }, { "case_id": 102, "status_id": 1 }])),
        (run, json!([{ "case_id": case + 5, "status_id": 1 }])),
        (run, json!([{ "case_id": case, "status_id": 3 }])),
        (run, json!([])),
        (limited, json!([{ "case_id": case, "status_id": 1 }])),
    ] {
        let refused = world.add_run_results(run, &results).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{results}");
    }
    assert!(world.execution(&id).await?.test_reports.is_empty(), "all or none");
    let accepted = json!([{ "case_id": 101, "status_id": 1 }]);
    for run in [run, limited] {
        world.add_run_results(run, &accepted).await?;
    }
    let unknown = world.add_run_results(run + 9, &accepted).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn a_run_ends_soon_after_its_results() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1)]).await?;
    let case = world.numbers(NumberedKind::TestCase, &["pays"]).await?[0];
    let (run, _) = world.open_run(&json!({})).await?;
    world
        .change("update execution set grace_in_sec = 86400, deadline = now() + interval '1 day'")
        .await?;
    let soon = "select count(*) from execution
                where deadline between now() + interval '1 hour' and now() + interval '2 hours'";
    assert_eq!(world.count(soon).await?, 0);
    world.add_run_results(run, &json!([{ "case_id": case, "status_id": 1 }])).await?;
    assert_eq!(world.count(soon).await?, 1);
    Ok(())
}

#[tokio::test]
async fn numbers_are_deleted_with_their_records() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("pays", 1)]).await?;
    let case = world.numbers(NumberedKind::TestCase, &["pays"]).await?[0];
    let (run, _) = world.open_run(&json!({})).await?;
    let added = world.add_run_results(run, &json!([{ "case_id": case, "status_id": 1 }])).await?;
    world.attach(&world.user, added[0].number, "log.txt", "x").await?;
    assert_eq!(world.count("select count(*) from number").await?, 4);
    let delete = "insert into deletion (customer_id, project_id)
                  select customer_id, project_id from execution limit 1";
    world.change(delete).await?;
    let refused = world.numbers(NumberedKind::TestCase, &["other"]).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert_eq!(world.count("select count(*) from number").await?, 0);
    Ok(())
}

#[tokio::test]
async fn ten_batches_at_once_are_stored() -> Result<()> {
    let world = World::new().await?;
    let identifiers: Vec<String> = (0..200).map(|number| format!("case {number}")).collect();
    let keys: Vec<&str> = identifiers.iter().map(String::as_str).collect();
    world.include(&keys.iter().map(|key| (*key, 1)).collect::<Vec<_>>()).await?;
    let numbers = world.numbers(NumberedKind::TestCase, &keys).await?;
    let (run, id) = world.open_run(&json!({})).await?;
    let batches: Vec<_> = numbers
        .chunks(20)
        .map(|part| part.iter().map(|case| json!({ "case_id": case, "status_id": 1 })).collect())
        .collect();
    let added = join_all(batches.iter().map(|batch| world.add_run_results(run, batch))).await;
    assert!(added.iter().all(|added| added.as_ref().is_ok_and(|added| added.len() == 20)));
    assert_eq!(world.execution(&id).await?.statistic.unwrap().test_cases_passed, 200);
    Ok(())
}
