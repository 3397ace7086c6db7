//! Searches for incidents among many executions of the same time.

use anyhow::Result;
use assay_execution::seek_incidents;
use assay_testkit::rows_read;
use serde_json::json;

use super::{complete_on, list};
use crate::{
    changes::{failed, passed},
    world::World,
};

/// The tables have no statistics yet, as those of a new installation: the plan must be right without them.
#[tokio::test]
async fn a_cause_is_looked_up_in_each_execution_and_not_in_all_failures() -> Result<()> {
    let world = World::new().await?;
    for branch in 0..10 {
        for set in ["web", "shop", "api", "app"] {
            let results = json!([failed("pays", "refused"), passed("returns")]);
            complete_on(&world, set, &format!("branch {branch}"), results).await?;
        }
    }
    for set in 0..9 {
        complete_on(&world, &format!("set {set}"), "main", json!([passed("pays")])).await?;
    }
    let before = rows_read(&world.db, "test_report").await;
    seek_incidents(&world.db).await?;
    let read = rows_read(&world.db, "test_report").await - before;

    assert_eq!(list(&world).await?, [], "four of 13 test sets are not most of them");
    let lookups = 40 * 40;
    assert!(read < 10 * lookups, "{read} test reports were read for {lookups} lookups");
    Ok(())
}
