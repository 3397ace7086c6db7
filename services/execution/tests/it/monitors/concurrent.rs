//! Monitors that are evaluated while they are changed.

use std::pin::pin;

use anyhow::Result;
use assay_database::begin;
use assay_execution::{evaluate_monitors, roll_up};
use assay_testkit::waits_for_lock;
use serde_json::json;

use super::{actions, create, recoveries, result, runs};
use crate::{changes::run, world::World};

#[tokio::test]
async fn an_evaluation_waits_for_a_change_of_its_monitor() -> Result<()> {
    let world = World::new().await?;
    let monitor = create(&world, recoveries()).await?;
    runs(&world, "main", "PFPFPFPP").await?;
    assert_eq!(actions(&world, &monitor).await?.len(), 1, "it is muted");
    run(&world, "main", json!(result("a", 'P'))).await?;
    roll_up(&world.db).await?;
    // A change locks the monitor, and then its alarms.
    let mut changing = begin(&world.db).await?;
    sqlx::query("select from monitor for update").execute(&mut *changing).await?;

    let mut evaluated = pin!(evaluate_monitors(&world.db));
    waits_for_lock(&world.db, evaluated.as_mut()).await?;
    sqlx::query("delete from monitor_alarm").execute(&mut *changing).await?;
    changing.commit().await?;
    evaluated.await?;

    assert_eq!(world.count("select count(*) from monitor_evaluation").await?, 0, "it is done");
    assert_eq!(actions(&world, &monitor).await?.len(), 1, "the monitor has begun again");
    Ok(())
}
