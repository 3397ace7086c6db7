//! Deletions whose event was lost.

use anyhow::Result;
use assay_events::{LostDeletions, Owner};
use assay_execution::{Deletions, LIVE_CUSTOMERS, LIVE_PROJECTS};
use tonic::Code;
use uuid::Uuid;

use crate::world::World;

/// Searches for projects that were deleted in the catalog, and returns their number.
async fn search(world: &World) -> Result<u64> {
    let lost = LostDeletions::new(Owner::Catalog(world.catalog()), LIVE_PROJECTS);
    Ok(lost.search(&world.db, &Deletions).await?)
}

#[tokio::test]
async fn a_project_whose_deletion_was_lost_is_found_and_deleted() -> Result<()> {
    let mut world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let (execution, archived) = (world.start().await?, world.start().await?);
    world.change("update execution set archived = true where id = (select max(id::text)::uuid from execution)").await?;
    let (first, set) = (world.project.clone(), world.set.clone());
    (world.project, world.set) = world.project_with_set().await?;
    world.include(&[("b", 1)]).await?;
    let kept = world.start().await?;
    let other = std::mem::replace(&mut world.project, first);
    let other_set = std::mem::replace(&mut world.set, set);
    assert_eq!(search(&world).await?, 0, "nothing is deleted");

    // No consumer receives the event.
    world.delete_project().await?;
    assert_eq!(search(&world).await?, 1);
    for execution in [&execution, &archived] {
        let gone = world.execution(&execution.id).await.unwrap_err();
        assert_eq!(gone.code(), Code::NotFound);
    }
    assert_eq!(search(&world).await?, 0, "it is found once");
    (world.project, world.set) = (other, other_set);
    world.execution(&kept.id).await?;

    // As if the catalog had been restored from a backup that is older than the project.
    world.change("update execution set project_id = gen_random_uuid()").await?;
    assert_eq!(search(&world).await?, 0);
    assert_eq!(world.count("select count(*) from deletion").await?, 1);
    assert_eq!(world.count("select count(*) from checked_deletions").await?, 1);
    Ok(())
}

#[tokio::test]
async fn the_records_that_an_owner_is_asked_about_are_listed_page_by_page() -> Result<()> {
    let mut world = World::new().await?;
    let mut projects = vec![Uuid::parse_str(&world.project)?];
    for _ in 0..4 {
        world.include(&[("a", 1)]).await?;
        world.start().await?;
        (world.project, world.set) = world.project_with_set().await?;
        projects.push(world.project.parse()?);
    }
    // The last one has a retention time and no execution.
    sqlx::query(
        "insert into retention (customer_id, project_id, days, revision)
         values ($1, $2::uuid, 30, 1)",
    )
    .bind(world.user.customer)
    .bind(&world.project)
    .execute(&world.db)
    .await?;
    // Others have several pools, or a monitor, and no execution either.
    let [with_pools, with_monitor] = [Uuid::now_v7(), Uuid::now_v7()];
    projects.extend([with_pools, with_monitor]);
    for (statement, project) in [
        (
            "insert into pool (customer_id, project_id, id, name, values)
             select $1, $2, gen_random_uuid(), n::text, '[{}]' from generate_series(1, 5) as n",
            with_pools,
        ),
        (
            "insert into monitor (customer_id, project_id, id, name, measure, runs, threshold, branch,
                 action, recover_after, dry_run, created_by_id, created_by)
             values ($1, $2, gen_random_uuid(), 'slow', 'Duration', 1, 1, '', 'Notify', 1, false, $1,
                 'ada')",
            with_monitor,
        ),
    ] {
        let insert = sqlx::query(statement).bind(world.user.customer).bind(project);
        insert.execute(&world.db).await?;
    }
    projects.sort_unstable();
    let mut listed = Vec::new();
    let mut after = (Uuid::nil(), Uuid::nil());
    loop {
        let page: Vec<(Uuid, Uuid)> = sqlx::query_as(LIVE_PROJECTS)
            .bind(after.0)
            .bind(after.1)
            .bind(2_i64)
            .fetch_all(&world.db)
            .await?;
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = *last;
        listed.extend(page.into_iter().map(|(_, project)| project));
    }
    assert_eq!(listed, projects);
    let customers: Vec<(Uuid, Uuid)> = sqlx::query_as(LIVE_CUSTOMERS)
        .bind(Uuid::nil())
        .bind(Uuid::nil())
        .bind(10_i64)
        .fetch_all(&world.db)
        .await?;
    assert_eq!(customers, [(world.user.customer.0, Uuid::nil())]);
    Ok(())
}
