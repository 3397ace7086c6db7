//! Searches for incidents while others change them.

use std::pin::pin;

use anyhow::Result;
use assay_database::begin;
use assay_execution::seek_incidents;
use assay_testkit::waits_for_lock;
use serde_json::json;

use crate::{
    changes::{passed, run},
    world::World,
};

#[tokio::test]
async fn a_search_locks_incidents_in_one_order() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a")])).await?;
    let open = "insert into incident
                    (customer_id, id, project_id, kind, headline, begun_at, last_seen_at)
                select customer_id, next_id(null), project_id, 'Outage', '', now(), now()
                from execution, generate_series(1, 3)";
    world.change(open).await?;
    let mut other = begin(&world.db).await?;
    let first = "select from incident order by id limit 1 for update";
    sqlx::query(first).execute(&mut *other).await?;

    let mut sought = pin!(seek_incidents(&world.db));
    waits_for_lock(&world.db, sought.as_mut()).await?;
    let free = "select count(*) from (select id from incident for update skip locked) as free";
    let free: i64 = sqlx::query_scalar(free).fetch_one(&mut *other).await?;
    assert_eq!(free, 3, "it has locked none of the later ones");
    other.commit().await?;
    sought.await?;
    assert_eq!(world.count("select count(*) from incident_search").await?, 0);
    Ok(())
}
