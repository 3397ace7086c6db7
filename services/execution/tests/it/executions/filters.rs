//! Filters of lists of executions, and the indexes that they use.

use anyhow::Result;
use assay_proto::{
    ExecutionStatus, TestResult,
    execution::{ExecutionFilter, ListExecutionsRequest},
};
use assay_testkit::eventually;
use futures::TryStreamExt;
use tonic::Status;
use uuid::Uuid;

use crate::world::{World, fields};

/// Inserts 4,000 copies of an execution, of which every 1,000th has the rare values.
const COPIES: &str = "
    with copies as (
        insert into execution
        select (jsonb_populate_record(e, jsonb_build_object(
            'id', overlay(e.id::text placing lpad(n::text, 12, '0') from 25),
            'result', case when n % 1000 = 0 then 'Error' else 'Passed' end,
            'status', case when n % 1000 = 0 then 'Canceled' else 'Completed' end,
            'branch', case when n % 1000 = 0 then 'rare' else 'main' end,
            'commit', case when n % 1000 = 0 then 'rare' else 'c' || n end,
            'build', case when n % 1000 = 0 then 'rare' else 'b' || n end,
            'ci_url', 'https://ci.test/' || case when n % 1000 = 0 then 0 else n end,
            'environment_id', case when n % 1000 = 0 then $2 else md5('e' || n % 7)::uuid end,
            'software_version_id', case when n % 1000 = 0 then $2 else md5('s' || n % 7)::uuid end,
            'request_user_id', case when n % 1000 = 0 then $2 else md5('u' || n % 7)::uuid end
        ))).*
        from execution e, generate_series(1, 4000) as n
        where e.id = $1::uuid
        returning customer_id, project_id, id, branch
    )
    insert into execution_tag (customer_id, project_id, tag, execution_id)
    select customer_id, project_id, branch, id from copies";

#[tokio::test]
async fn each_filter_reads_few_executions_by_an_index() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    let rare = Uuid::now_v7();
    sqlx::query(COPIES).bind(&execution.id).bind(rare).execute(&world.db).await?;
    sqlx::query("analyze").execute(&world.db).await?;
    let none = ExecutionFilter::default;
    let id = || Some(rare.to_string());

    for (index, filter) in [
        ("execution_result_idx", ExecutionFilter { result: TestResult::Error.into(), ..none() }),
        (
            "execution_status_idx",
            ExecutionFilter { status: ExecutionStatus::Canceled.into(), ..none() },
        ),
        ("execution_branch_idx", ExecutionFilter { branch: Some("rare".into()), ..none() }),
        ("execution_commit_idx", ExecutionFilter { commit: Some("rare".into()), ..none() }),
        ("execution_build_idx", ExecutionFilter { build: Some("rare".into()), ..none() }),
        (
            "execution_ci_url_idx",
            ExecutionFilter { ci_url: Some("https://ci.test/0".into()), ..none() },
        ),
        ("execution_environment_idx", ExecutionFilter { environment_id: id(), ..none() }),
        ("execution_subject_idx", ExecutionFilter { subject_id: id(), ..none() }),
        ("execution_request_user_idx", ExecutionFilter { request_user_id: id(), ..none() }),
        ("execution_tag_pkey", ExecutionFilter { tag: Some("rare".into()), ..none() }),
    ] {
        let before = scans(&world, index).await?;
        let request = ListExecutionsRequest {
            project_id: world.project.clone(),
            filter: Some(filter),
            ..ListExecutionsRequest::default()
        };
        let batches = world.executions().list_executions(world.user.call(request)).await?;
        let batches: Vec<_> = batches.into_inner().try_collect().await?;
        let listed: usize = batches.iter().map(|batch| count(&batch.items)).sum();
        assert_eq!(listed, 4, "{index}");
        eventually(index, async || (scans(&world, index).await.unwrap() > before).then_some(()))
            .await;
    }
    Ok(())
}

/// Counts the executions in the JSON of a batch.
fn count(items: &[u8]) -> usize {
    text(items).matches("\"TestSetId\"").count()
}

fn text(items: &[u8]) -> String {
    String::from_utf8_lossy(items).into_owned()
}

/// Returns how often an index was used.
async fn scans(world: &World, index: &str) -> Result<i64> {
    let scans =
        sqlx::query_scalar("select idx_scan from pg_stat_user_indexes where indexrelname = $1");
    Ok(scans.bind(index).fetch_one(&world.db).await?)
}

/// Inserts 4,000 copies of an execution in three test sets, on three branches and in three environments; some
/// were canceled or are running. One set was only run on the branch `main` long ago.
const SERIES: &str = "
    insert into execution
    select (jsonb_populate_record(e, jsonb_build_object(
        'id', overlay(e.id::text placing lpad(n::text, 12, '0') from 25),
        'test_set_id', md5('set ' || n % 3)::uuid,
        'status', case n % 7 when 0 then 'Canceled' when 1 then 'Running' else 'Completed' end,
        'branch', case
            when n % 3 = 2 and n > 100 then 'feature'
            else (array['main', 'feature', null])[1 + n / 3 % 3]
        end,
        'environment_id', case n % 5 when 0 then null else md5('e' || n % 5 % 2)::uuid end
    ))).*
    from execution e, generate_series(1, 4000) as n
    where e.id = $1::uuid";

#[tokio::test]
async fn the_latest_execution_of_each_set_on_a_branch_is_found_however_old_it_is() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let execution = world.start().await?;
    sqlx::query(SERIES).bind(&execution.id).execute(&world.db).await?;
    sqlx::query("analyze").execute(&world.db).await?;
    let latest: Vec<(String, String)> = sqlx::query_as(
        "select distinct on (test_set_id) test_set_id::text, id::text from execution
         where branch = 'main' and status = 'Completed' and id <> $1::uuid
         order by test_set_id, id desc",
    )
    .bind(&execution.id)
    .fetch_all(&world.db)
    .await?;
    assert_eq!(latest.len(), 3);
    let list = async |latest_of: String, branch: Option<&str>| {
        let filter = ExecutionFilter {
            latest_of: Some(latest_of),
            branch: branch.map(str::to_owned),
            ..ExecutionFilter::default()
        };
        let request = ListExecutionsRequest {
            project_id: world.project.clone(),
            filter: Some(filter),
            ..ListExecutionsRequest::default()
        };
        let batches = world.executions().list_executions(world.user.call(request)).await?;
        let batches: Vec<_> = batches.into_inner().try_collect().await?;
        Ok::<_, Status>(batches.iter().map(|batch| text(&batch.items)).collect::<String>())
    };

    let index = "execution_ended_idx";
    let before = scans(&world, index).await?;
    let sets: Vec<_> = latest.iter().map(|(set, _)| set.as_str()).collect();
    let listed = list(sets.join(","), Some("main")).await?;
    for (_, id) in &latest {
        assert!(listed.contains(&format!("\"Id\":\"{id}\"")), "{id}: {listed}");
    }
    assert_eq!(listed.matches("\"TestSetId\"").count(), 3);
    let listed = list(latest[0].0.clone(), Some("main")).await?;
    assert_eq!(listed.matches("\"TestSetId\"").count(), 1);
    assert_eq!(list(latest[0].0.clone(), Some("other")).await?.matches("\"Id\"").count(), 0);
    eventually(index, async || (scans(&world, index).await.unwrap() > before).then_some(())).await;

    for (sets, branch) in [
        (latest[0].0.clone(), None),
        ("soon".to_owned(), Some("main")),
        (vec![latest[0].0.as_str(); 101].join(","), Some("main")),
    ] {
        assert_eq!(fields(&list(sets, branch).await.unwrap_err()), ["latestOf"]);
    }
    Ok(())
}
