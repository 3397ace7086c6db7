//! Insights: test cases that are flaky, newly failing, failing most, slowest or slower than before.

mod began;

use std::pin::pin;

use anyhow::Result;
use assay_database::begin;
use assay_execution::roll_up;
use assay_proto::{
    Batch, Page,
    execution::{
        Insight, InsightBatch, InsightKind, ListInsightsRequest,
        insight_service_client::InsightServiceClient,
    },
};
use assay_testkit::waits_for_lock;
use futures::TryStreamExt;
use serde_json::{Value, json};
use tonic::Status;

use crate::{
    changes::{failed, passed, run},
    world::{World, fields},
};

async fn batches(world: &World, request: ListInsightsRequest) -> Result<Vec<InsightBatch>, Status> {
    let request = ListInsightsRequest { project_id: world.project.clone(), ..request };
    let mut insights = InsightServiceClient::new(world.execution.clone());
    insights.list_insights(world.user.call(request)).await?.into_inner().try_collect().await
}

async fn list(world: &World, request: ListInsightsRequest) -> Result<Vec<Insight>, Status> {
    let batches = batches(world, request).await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

fn of(kind: InsightKind) -> ListInsightsRequest {
    ListInsightsRequest { kind: kind.into(), ..Default::default() }
}

/// Returns the identifiers of the test cases of a ranking.
async fn ranking(world: &World, request: ListInsightsRequest) -> Result<Vec<String>, Status> {
    let insights = list(world, request).await?;
    Ok(insights.into_iter().map(|insight| insight.test_case_identifier).collect())
}

/// Returns a result that passed in this number of seconds.
fn lasting(identifier: &str, seconds: f64) -> Value {
    json!({
        "Identifier": identifier, "Result": "Passed",
        "StartDateTime": "2026-11-20T11:00:00Z", "DurationInSec": seconds,
    })
}

/// Returns a result that passed in its second attempt.
fn retried(identifier: &str) -> Value {
    let attempts = [failed(identifier, "lost"), passed(identifier)];
    let attempt = |(result, number): (Value, i32)| {
        let mut result = result;
        result["Attempt"] = json!(number);
        result
    };
    json!(attempts.into_iter().zip(1..).map(attempt).collect::<Vec<_>>())
}

/// Runs tests on the branch `main`, and adds up their results. Lists of results are flattened.
async fn add(world: &World, results: Vec<Value>) -> Result<()> {
    let flat = results.into_iter().flat_map(|result| match result {
        Value::Array(attempts) => attempts,
        result => vec![result],
    });
    run(world, "main", flat.collect()).await?;
    Ok(roll_up(&world.db).await?)
}

#[tokio::test]
async fn test_cases_are_ranked_by_the_reasons_why_they_need_attention() -> Result<()> {
    let world = World::new().await?;
    assert_eq!(list(&world, ListInsightsRequest::default()).await?, [], "nothing has run");
    let [good, bad] = [passed, |case: &str| failed(case, "lost")];
    add(&world, vec![good("old"), good("broken"), lasting("slow", 9.0), retried("retried")])
        .await?;
    add(&world, vec![bad("old"), bad("flips"), good("broken"), lasting("slow", 1.0)]).await?;
    add(&world, vec![good("old"), good("flips"), bad("broken"), lasting("fast", 0.1)]).await?;
    add(&world, vec![bad("old"), bad("flips"), bad("broken"), retried("retried")]).await?;
    add(&world, vec![good("old"), good("flips"), lasting("fast", 0.1), retried("retried")]).await?;

    let flaky = list(&world, ListInsightsRequest::default()).await?;
    let names = flaky.iter().map(|insight| insight.test_case_identifier.as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["retried", "flips", "old"]);
    let retried = &flaky[0];
    assert_eq!((retried.runs, retried.failures, retried.flaky_runs), (3, 0, 3));
    assert_eq!((flaky[2].recoveries, flaky[2].outcomes.as_str()), (2, "PFPFP"));
    assert_eq!(ranking(&world, of(InsightKind::NewlyFailing)).await?, ["broken"]);
    assert_eq!(
        ranking(&world, of(InsightKind::MostFailed)).await?,
        ["flips", "broken", "old"],
        "newer test cases come first among those with as many failures"
    );
    let slowest = list(&world, of(InsightKind::Slowest)).await?;
    let average = |insight: &Insight| (insight.average_duration_in_sec * 10.0).round() / 10.0;
    assert_eq!(
        slowest.iter().map(average).collect::<Vec<_>>(),
        [5.0, 0.1],
        "test cases without a duration are not slow"
    );
    Ok(())
}

#[tokio::test]
async fn a_flaky_test_and_one_with_another_cause_have_not_begun_to_fail() -> Result<()> {
    let world = World::new().await?;
    let cause = |cause: &str| failed("changed", cause);
    for [flaky, changed] in [
        [passed("flaky"), passed("changed")],
        [failed("flaky", "lost"), cause("lost")],
        [passed("flaky"), cause("lost")],
        [failed("flaky", "lost"), cause("lost")],
        [passed("flaky"), cause("lost")],
    ] {
        add(&world, vec![flaky, changed]).await?;
    }
    let ago = "update case_day set day = day - 60 where test_case_id in
                   (select test_case_id from test_report where test_case_identifier = 'changed')";
    world.change(ago).await?;
    add(&world, vec![failed("flaky", "lost"), cause("other"), failed("new", "lost")]).await?;
    let newly = ListInsightsRequest { days: Some(30), ..of(InsightKind::NewlyFailing) };
    assert_eq!(ranking(&world, newly).await?, ["new"]);
    Ok(())
}

#[tokio::test]
async fn rankings_are_of_a_branch_and_of_the_last_days() -> Result<()> {
    let world = World::new().await?;
    add(&world, vec![failed("a", "lost")]).await?;
    run(&world, "other", json!([failed("b", "lost"), passed("a")])).await?;
    roll_up(&world.db).await?;
    let most_failed = async |branch: &str, days| {
        let (branch, days) = (Some(branch.to_owned()), Some(days));
        ranking(&world, ListInsightsRequest { branch, days, ..of(InsightKind::MostFailed) }).await
    };

    assert_eq!(most_failed("", 1).await?, ["b", "a"]);
    assert_eq!(most_failed("main", 1).await?, ["a"]);
    assert_eq!(most_failed("unknown", 1).await?, [""; 0]);
    let request =
        ListInsightsRequest { branch: Some("other".to_owned()), ..of(InsightKind::MostFailed) };
    assert_eq!(list(&world, request).await?[0].outcomes, "F");
    world.change("update case_day set day = day - 7").await?;
    assert_eq!(most_failed("", 7).await?, [""; 0]);
    assert_eq!(most_failed("", 8).await?, ["b", "a"]);
    for days in [0, 91] {
        let refused = most_failed("", days).await.unwrap_err();
        assert_eq!(fields(&refused), ["days"]);
    }
    Ok(())
}

#[tokio::test]
async fn rankings_are_paged_and_searched() -> Result<()> {
    let world = World::new().await?;
    let cases = ["a", "b", "c", "d", "e"];
    add(&world, cases.iter().map(|case| failed(case, "lost")).collect()).await?;
    add(&world, vec![failed("c", "lost")]).await?;
    let page = async |cursor: Option<String>| {
        let page = Some(Page { limit: Some(2), cursor, ..Default::default() });
        let request = ListInsightsRequest { page, ..of(InsightKind::MostFailed) };
        let batches = batches(&world, request).await?;
        let next = batches.last().and_then(|batch| batch.next_cursor.clone());
        let items: Vec<Insight> = batches.iter().flat_map(|batch| batch.parse().unwrap()).collect();
        let names: String = items.into_iter().map(|item| item.test_case_identifier).collect();
        Ok::<_, Status>((names, next))
    };

    let (first, next) = page(None).await?;
    let (second, next) = page(next).await?;
    let (third, next) = page(next).await?;
    assert_eq!([first, second, third], ["ce", "db", "a"]);
    assert_eq!(next, None);
    let page = Some(Page { q: Some("D".to_owned()), ..Default::default() });
    let request = ListInsightsRequest { page, ..of(InsightKind::MostFailed) };
    assert_eq!(ranking(&world, request).await?, ["d"]);
    Ok(())
}

#[tokio::test]
async fn a_ranking_considers_the_first_test_cases_of_a_night_in_which_all_fail() -> Result<()> {
    let world = World::new().await?;
    add(&world, vec![failed("a", "lost"), passed("b")]).await?;
    add(&world, vec![failed("a", "lost"), passed("b")]).await?;
    world
        .change(
            "insert into case_day
             select customer_id, project_id, gen_random_uuid(), day, branch, 1, 1, 1, 0, 0, 1, true,
                    last_execution_id, true
             from case_day, generate_series(1, 6000)
             where failures > 0",
        )
        .await?;

    let failing = list(&world, of(InsightKind::MostFailed)).await?;

    assert_eq!((failing.len(), failing[0].test_case_identifier.as_str()), (5000, "a"));
    let page = Some(Page { limit: Some(10), q: Some("A".to_owned()), ..Default::default() });
    let request = ListInsightsRequest { page, ..of(InsightKind::MostFailed) };
    assert_eq!(ranking(&world, request).await?, ["a"]);
    Ok(())
}

#[tokio::test]
async fn results_are_added_up_once_and_kept_for_ninety_days() -> Result<()> {
    let world = World::new().await?;
    add(&world, vec![failed("a", "lost"), passed("b")]).await?;
    roll_up(&world.db).await?;
    let runs = "select sum(runs) from case_day";
    assert_eq!(world.count(runs).await?, 2);

    world.change("update case_day set day = day - 89").await?;
    assay_execution::enforce_retention(&world.db, world.artifacts_store()).await?;
    assert_eq!(world.count("select count(*) from case_day").await?, 2);
    world.change("update case_day set day = day - 1").await?;
    assay_execution::enforce_retention(&world.db, world.artifacts_store()).await?;
    assert_eq!(world.count("select count(*) from case_day").await?, 0);
    Ok(())
}

#[tokio::test]
async fn drift_of_days_is_found_and_repaired() -> Result<()> {
    let world = World::new().await?;
    add(&world, vec![lasting("a", 2.0), passed("b")]).await?;
    add(&world, vec![failed("a", "lost"), passed("b")]).await?;
    assert_eq!(world.differences().await?, 0);
    for drift in [
        "update case_day set failures = 7",
        "update case_day set duration_in_sec = duration_in_sec + 1",
        "update case_day set is_slow = not is_slow",
        "update case_day set last_failed = not last_failed",
        "update case_day set branch = 'elsewhere'",
        "delete from case_day",
        "insert into case_day
         select customer_id, project_id, gen_random_uuid(), day, branch, runs, failures,
                new_failures, flaky_runs, recoveries, duration_in_sec, is_slow,
                last_execution_id, last_failed
         from case_day",
    ] {
        world.change(drift).await?;
        assert_ne!(world.differences().await?, 0, "{drift}");
        assay_execution::rebuild(&world.db).await?;
        assert_eq!(world.differences().await?, 0, "{drift}");
    }
    Ok(())
}

#[tokio::test]
async fn an_execution_that_cannot_be_added_delays_no_other_and_is_given_up() -> Result<()> {
    let world = World::new().await?;
    let refuse = "create function refuse() returns trigger language plpgsql as
                  'begin raise exception ''stuck''; end';
                  create trigger refuse before insert on case_day for each row
                  when (new.branch = 'stuck') execute function refuse()";
    sqlx::raw_sql(refuse).execute(&world.db).await?;
    run(&world, "stuck", json!([passed("a")])).await?;
    run(&world, "main", json!([passed("a")])).await?;
    roll_up(&world.db).await?;
    let branches = "select string_agg(branch, ',') from case_day";
    let branch: String = sqlx::query_scalar(branches).fetch_one(&world.db).await?;
    assert_eq!(branch, "main");

    let last = "update unfinished_work set failures = 19, next_attempt_at = now()";
    world.change(last).await?;
    roll_up(&world.db).await?;
    let given_up = "select count(*) from unfinished_work where reason like '%stuck%'
                    and given_up_at is not null and kind = 'insight'";
    assert_eq!(world.count(given_up).await?, 1);
    world.change("drop trigger refuse on case_day").await?;
    roll_up(&world.db).await?;
    assert_eq!(world.count("select count(*) from case_day").await?, 1);
    let work = assay_execution::WORK.iter().find(|work| work.kind == "insight").unwrap();
    let mut connection = world.db.acquire().await?;
    work.retry(&mut connection, None).await?;
    roll_up(&world.db).await?;
    assert_eq!(world.count("select count(*) from case_day").await?, 2);
    Ok(())
}

#[tokio::test]
async fn dropping_dead_letters_locks_executions_in_one_order() -> Result<()> {
    let world = World::new().await?;
    for _ in 0..8 {
        run(&world, "main", json!([passed("a")])).await?;
    }
    let give_up = "insert into unfinished_work (kind, customer_id, id, taken, given_up_at)
                   select 'insight', customer_id, id, 0, now() from execution order by id desc";
    world.change(give_up).await?;
    let mut other = begin(&world.db).await?;
    let first = "select from execution order by id limit 1 for update";
    sqlx::query(first).execute(&mut *other).await?;

    let work = assay_execution::WORK.iter().find(|work| work.kind == "insight").unwrap();
    let mut connection = world.db.acquire().await?;
    let mut dropped = pin!(work.drop(&mut connection, None));
    waits_for_lock(&world.db, dropped.as_mut()).await?;
    let free = "select count(*) from (select id from execution for update skip locked) as free";
    let free: i64 = sqlx::query_scalar(free).fetch_one(&mut *other).await?;
    assert_eq!(free, 8, "it has locked none of the later ones");
    other.commit().await?;
    assert_eq!(dropped.await?, 8);
    Ok(())
}
