//! Executions of the past.

use anyhow::Result;
use assay_proto::{Timestamp, execution::OpenExecutionInput};
use chrono::{Months, Utc};
use serde_json::json;

use super::{by_name, passed};
use crate::world::World;

/// The time some months ago.
#[expect(clippy::disallowed_methods, reason = "it is compared with the time of the database")]
fn months_ago(months: u32) -> Timestamp {
    Timestamp(Utc::now() - Months::new(months))
}

#[tokio::test]
async fn results_of_a_month_that_has_expired_are_stored() -> Result<()> {
    let world = World::new().await?;
    // The installation is old, and has dropped the month before the last one.
    for table in ["instance", "attempt"] {
        let statement = format!(
            "drop table {table}_before;
             create table {table}_before partition of {table} for values from (minvalue)
             to (first_id_at(date_trunc('month', now(), 'utc') - interval '4 months'))"
        );
        for statement in statement.split(';') {
            world.change(statement.to_owned().leak()).await?;
        }
    }
    for months in [2, 9] {
        let input = OpenExecutionInput {
            request_time: Some(months_ago(months)),
            ..by_name(&format!("run-{months}"))
        };
        let execution = world.open(input).await?;
        world.report(&execution.id, json!([passed("a")])).await?;
    }

    assert_eq!(world.count("select count(*) from instance").await?, 2);
    assert_eq!(world.count("select count(*) from instance_before").await?, 1);
    Ok(())
}
