//! Lists of executions.

use anyhow::Result;
use assay_proto::{
    Batch as _, ExecutionStatus, Page, TestResult,
    execution::{ExecutionEntry, ExecutionFilter, ExecutionMode, ListExecutionsRequest},
};
use assay_testkit::eventually;
use futures::TryStreamExt;
use tonic::{Code, Status};

use crate::world::World;

async fn list(world: &World, set: Option<&str>, page: Page) -> Result<Vec<ExecutionEntry>, Status> {
    list_matching(world, set, ExecutionFilter::default(), page).await
}

async fn list_matching(
    world: &World,
    set: Option<&str>,
    filter: ExecutionFilter,
    page: Page,
) -> Result<Vec<ExecutionEntry>, Status> {
    let request = ListExecutionsRequest {
        project_id: world.project.clone(),
        test_set_id: set.map(str::to_owned),
        page: Some(page),
        archived: Some(false),
        filter: Some(filter),
    };
    let batches = world.executions().list_executions(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

#[tokio::test]
async fn executions_are_listed_newest_first() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let mut started = Vec::new();
    for _ in 0..5 {
        started.insert(0, world.start().await?.id);
    }
    let ids = |entries: Vec<ExecutionEntry>| entries.into_iter().map(|e| e.id).collect::<Vec<_>>();

    assert_eq!(ids(list(&world, None, Page::default()).await?), started);
    assert_eq!(ids(list(&world, Some(&world.set), Page::default()).await?), started);
    let page = Page { limit: Some(2), cursor: Some(started[1].clone()), q: None };
    assert_eq!(ids(list(&world, None, page).await?), started[2..4]);
    for (q, found) in [("IGHT", 5), ("100%", 0)] {
        let page = Page { q: Some(q.to_owned()), ..Page::default() };
        assert_eq!(list(&world, Some(&world.set), page).await?.len(), found, "{q}");
    }

    sqlx::query("update execution set archived = true where id::text = $1")
        .bind(&started[0])
        .execute(&world.db)
        .await?;
    assert_eq!(ids(list(&world, None, Page::default()).await?), started[1..]);
    let unknown = list(&world, Some(&world.project), Page::default()).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn executions_are_listed_while_the_catalog_is_unavailable() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let started = world.start().await?;
    let stranger = world.stranger().await;

    world.wire.cut();
    eventually("an unavailable catalog", async || world.start().await.err()).await;
    let listed = list(&world, Some(&world.set), Page::default()).await?;
    assert_eq!(listed.iter().map(|entry| &entry.id).collect::<Vec<_>>(), [&started.id]);
    let request = ListExecutionsRequest { project_id: world.project.clone(), ..Default::default() };
    let uncached = world.executions().list_executions(stranger.call(request)).await;
    assert_eq!(uncached.map(drop).unwrap_err().code(), Code::Unavailable);

    world.wire.restore();
    let unknown = async || list(&world, Some(&world.project), Page::default()).await.err();
    eventually("an available catalog", unknown).await;
    Ok(())
}

#[tokio::test]
async fn a_search_finds_rare_executions_in_a_long_history() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    sqlx::query(
        "insert into execution
         select (jsonb_populate_record(e, jsonb_build_object(
             'id', overlay(e.id::text placing lpad(n::text, 12, '0') from 25),
             'test_set_name', case when n % 3000 = 7 then 'Rare' else 'Common' end
         ))).*
         from execution e, generate_series(1, 10000) as n
         where e.id = $1::uuid",
    )
    .bind(&execution.id)
    .execute(&world.db)
    .await?;
    let ids = |entries: Vec<ExecutionEntry>| entries.into_iter().map(|e| e.id).collect::<Vec<_>>();
    let rare = Page { q: Some("rar".to_owned()), ..Page::default() };

    let all = ids(list(&world, None, rare.clone()).await?);

    let numbers: Vec<&str> = all.iter().map(|id| &id[24..]).collect();
    assert_eq!(numbers, ["000000009007", "000000006007", "000000003007", "000000000007"]);
    let page = Page { limit: Some(2), ..rare.clone() };
    assert_eq!(ids(list(&world, None, page).await?), all[..2]);
    let page = Page { limit: Some(2), cursor: Some(all[1].clone()), ..rare };
    assert_eq!(ids(list(&world, Some(&world.set), page).await?), all[2..]);
    let page = Page { q: Some("common".to_owned()), ..Page::default() };
    assert_eq!(list(&world, None, page).await?.len(), 9996);
    Ok(())
}

#[tokio::test]
async fn executions_are_found_by_each_of_their_fields() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let other = world.start().await?;
    let mut request = world.start_request(ExecutionMode::External);
    let input = request.execution.as_mut().unwrap();
    input.tags = Some("nightly, release".to_owned());
    input.branch = Some("feature/pay".to_owned());
    input.commit = Some("3f2c1d0".to_owned());
    input.build = Some("build-1205".to_owned());
    input.ci_url = Some("https://ci.test/jobs/1205".to_owned());
    let sought = world.start_by(request).await?;
    let results = serde_json::json!([{ "Identifier": "a", "Result": "Failed" }]);
    world.report(&sought.id, results).await?;
    world.complete(&sought.id).await?;
    let none = ExecutionFilter::default;
    let today = sought.request_time.unwrap().0.date_naive();
    let yesterday = today.pred_opt().unwrap().to_string();
    let all = list(&world, None, Page::default()).await?;
    let user = all[0].request_user_id.clone();
    assert_eq!(all[0].statistic.as_ref().unwrap().test_cases_failed, 1);
    assert_eq!((all[0].status(), all[1].status()), (ExecutionStatus::Completed, other.status()));

    for (filter, found) in [
        (ExecutionFilter { result: TestResult::Failed.into(), ..none() }, 1),
        (ExecutionFilter { status: ExecutionStatus::Completed.into(), ..none() }, 1),
        (ExecutionFilter { tag: Some("release".to_owned()), ..none() }, 1),
        (ExecutionFilter { tag: Some("rel".to_owned()), ..none() }, 0),
        (ExecutionFilter { branch: Some("feature/pay".to_owned()), ..none() }, 1),
        (ExecutionFilter { commit: Some("3f2c1d0".to_owned()), ..none() }, 1),
        (ExecutionFilter { commit: Some("3f2c".to_owned()), ..none() }, 0),
        (ExecutionFilter { build: Some("build-1205".to_owned()), ..none() }, 1),
        (ExecutionFilter { ci_url: Some("https://ci.test/jobs/1205".to_owned()), ..none() }, 1),
        (ExecutionFilter { environment_id: Some(world.set.clone()), ..none() }, 0),
        (ExecutionFilter { subject_id: Some(world.set.clone()), ..none() }, 0),
        (ExecutionFilter { request_user_id: Some(user), ..none() }, 2),
        (ExecutionFilter { request_user_id: Some(world.set.clone()), ..none() }, 0),
        (ExecutionFilter { to_date: Some(yesterday.clone()), ..none() }, 0),
        (ExecutionFilter { from_date: Some(yesterday), ..none() }, 2),
    ] {
        let listed =
            list_matching(&world, Some(&world.set), filter.clone(), Page::default()).await?;
        assert_eq!(listed.len(), found, "{filter:?}");
        if found == 1 {
            assert_eq!(listed[0].id, sought.id);
        }
    }
    for (q, found) in [("build-12", 1), ("feature", 1), ("release", 1), ("nothing", 0)] {
        let page = Page { q: Some(q.to_owned()), ..Page::default() };
        assert_eq!(list(&world, None, page).await?.len(), found, "{q}");
    }
    let wrong = ExecutionFilter { from_date: Some("soon".to_owned()), ..none() };
    let refused = list_matching(&world, None, wrong, Page::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    Ok(())
}
