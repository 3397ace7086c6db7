//! Causes of failures: how they are grouped, and which failures have one.

mod pages;

use std::collections::HashSet;

use anyhow::Result;
use assay_proto::{
    Batch, Page, ResultChange,
    execution::{
        Execution, Failure, GetVerdictRequest, ListFailuresRequest, ListTestReportsRequest,
    },
};
use futures::TryStreamExt;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::{
    changes::{counts, failed, list_reports, passed, reports, run},
    world::{World, fields, instance},
};

pub(crate) async fn failures(
    world: &World,
    request: ListFailuresRequest,
) -> Result<Vec<Failure>, Status> {
    let batches = world.failures().list_failures(world.user.call(request)).await?.into_inner();
    let batches: Vec<_> = batches.try_collect().await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

#[tokio::test]
async fn failures_of_one_cause_are_one_group() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([failed("t0", "timeout after 31 s at 10.0.0.3:5000")])).await?;
    let timeouts = (0..12).map(|nr| {
        failed(&format!("t{nr}"), &format!("timeout after {nr} s at 10.0.0.{nr}:50{nr:02}"))
    });
    let others = [
        failed("sum", "assert total == 'EUR 12'"),
        failed("silent", ""),
        failed("quiet", ""),
        passed("fine"),
    ];
    let results: Vec<Value> = timeouts.chain(others).collect();
    let execution = run(&world, "main", json!(results)).await?;

    let of = |change| {
        let execution_id = execution.id.clone();
        let mut request = ListFailuresRequest { execution_id, ..Default::default() };
        request.set_change(change);
        request
    };
    let all = failures(&world, of(ResultChange::Unspecified)).await?;

    let shown: Vec<_> = all.iter().map(|cause| (cause.count, cause.headline.as_str())).collect();
    assert_eq!(shown.len(), 4, "{shown:?}");
    assert_eq!(shown[0].0, 12);
    assert!(shown.contains(&(1, "assert total == 'EUR 12'")), "{shown:?}");
    assert_eq!(shown.iter().filter(|(_, headline)| headline.is_empty()).count(), 2);
    let [timeout, ..] = &all[..] else { panic!("no causes") };
    assert_eq!((timeout.variants, timeout.reports.len()), (12, 5));
    assert_ne!(timeout.first_execution_id, execution.id);
    let new = failures(&world, of(ResultChange::New)).await?;
    assert_eq!(new.iter().map(|cause| cause.count).max(), Some(11), "t0 failed before");
    let searched = ListFailuresRequest {
        page: Some(Page { q: Some("AT 10.0.0.3:".to_owned()), ..Page::default() }),
        ..of(ResultChange::Unspecified)
    };
    let searched = failures(&world, searched).await?;
    let counts: Vec<_> = searched.iter().map(|cause| (cause.count, cause.variants)).collect();
    assert_eq!(counts, [(12, 12)], "a message selects its cause as a whole");
    let alone = |fingerprint: &str| ListFailuresRequest {
        fingerprint: Some(fingerprint.to_owned()),
        ..of(ResultChange::Unspecified)
    };
    assert_eq!(failures(&world, alone(&timeout.fingerprint)).await?, all[..1]);
    let wrong = failures(&world, alone("1")).await.unwrap_err();
    assert_eq!(fields(&wrong), ["fingerprint"]);

    let by_fingerprint = ListTestReportsRequest {
        execution_id: execution.id.clone(),
        fingerprint: Some(timeout.fingerprint.clone()),
        ..Default::default()
    };
    assert_eq!(list_reports(&world, by_fingerprint.clone()).await?.len(), 12);
    let wrong = ListTestReportsRequest { fingerprint: Some("1".to_owned()), ..by_fingerprint };
    assert_eq!(fields(&list_reports(&world, wrong).await.unwrap_err()), ["fingerprint"]);

    let project_id = Some(uuid::Uuid::now_v7().to_string());
    let elsewhere = ListFailuresRequest { project_id, ..of(ResultChange::Unspecified) };
    assert_eq!(failures(&world, elsewhere).await.unwrap_err().code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn causes_of_expired_results_are_hidden_before_they_are_removed() -> Result<()> {
    let world = World::new().await?;
    let failing = || json!([failed("a", "lost")]);
    let (old, young) =
        (run(&world, "main", failing()).await?, run(&world, "main", failing()).await?);
    sqlx::query("update execution set expired_at = now() where id::text = $1")
        .bind(&old.id)
        .execute(&world.db)
        .await?;

    let of = |execution: &Execution| ListFailuresRequest {
        execution_id: execution.id.clone(),
        ..Default::default()
    };
    assert_eq!(failures(&world, of(&old)).await?, []);
    let cause = failures(&world, of(&young)).await?.remove(0);
    assert_eq!(cause.first_execution_id, young.id, "an expired execution is not the first one");

    let request = GetVerdictRequest { project_id: None, execution_id: old.id.clone() };
    let verdict = world.executions().get_verdict(world.user.call(request)).await?.into_inner();
    let headlines = reports(&world, &old).await?.into_iter().map(|report| report.headline);
    assert_eq!(headlines.collect::<Vec<_>>(), [""], "the report itself is kept");
    assert_eq!(verdict.new_failures[0].headline, "");
    Ok(())
}

#[tokio::test]
async fn reports_that_an_engine_could_not_run_have_a_cause() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 2), ("c", 1)]).await?;
    let execution = world.dispatch().await?;
    let engine = world.engine();
    for case in ["a", "b", "c"] {
        let lease = engine.lease_one().await?;
        if case == "b" {
            engine.report(&lease.id, json!([instance(1, "Failed")])).await?;
        }
        if case == "c" {
            engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
        }
        engine.complete(&lease.id, case != "c").await?;
    }
    let of = |change| {
        let execution_id = execution.id.clone();
        let mut request = ListFailuresRequest { execution_id, ..Default::default() };
        request.set_change(change);
        request
    };

    let causes = failures(&world, of(ResultChange::New)).await?;

    let shown: Vec<_> = causes.iter().map(|cause| (cause.headline.as_str(), cause.count)).collect();
    assert_eq!(shown, [("The browser did not start", 2), ("", 1)], "b has a failed instance, too");
    assert_eq!(counts(&world, &execution).await?, [2, 0, 0, 0, 2]);
    assert_eq!(reports(&world, &execution).await?[0].headline, "The browser did not start");
    assert_eq!(world.differences().await?, 0);
    let comment = "update test_report set comment = 'Restarted the lab' where comment is not null";
    world.change(comment).await?;
    assert_eq!(world.differences().await?, 0, "a review does not change the cause");
    for drift in [
        "delete from failure where instance_nr = 0",
        "update failure set headline = 'other' where instance_nr = 0",
        "insert into failure select customer_id, test_report_id, -1, project_id, execution_id,
             test_case_id, fingerprint, version, headline from failure where instance_nr = 0",
    ] {
        world.change(drift).await?;
        assert_ne!(world.differences().await?, 0, "{drift}");
        assay_execution::rebuild(&world.db).await?;
        assert_eq!(world.differences().await?, 0, "{drift}");
    }
    world.change("update execution set expired_at = now()").await?;
    assay_execution::enforce_retention(&world.db, world.artifacts_store()).await?;
    assert_eq!(world.count("select count(*) from failure").await?, 0);
    Ok(())
}

#[tokio::test]
async fn all_causes_are_listed_even_if_their_reports_are_large() -> Result<()> {
    let world = World::new().await?;
    let case = |nr: i32| failed(&format!("t{nr}"), &format!("cannot open '{}'", nr / 5));
    let results: Vec<Value> = (0..500).map(case).collect();
    let execution = run(&world, "main", json!(results)).await?;
    world.change("update test_report set comment = repeat('long ', 4000)").await?;
    let execution_id = execution.id.clone();

    let causes = failures(&world, ListFailuresRequest { execution_id, ..Default::default() });

    let causes = causes.await?;
    let distinct: HashSet<_> = causes.iter().map(|cause| cause.fingerprint.as_str()).collect();
    assert_eq!((causes.len(), distinct.len()), (100, 100));
    assert!(causes.iter().all(|cause| cause.reports.len() == 5));
    Ok(())
}
