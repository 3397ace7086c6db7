//! The task that adds up usage, and exports it as metrics.

use std::time::Duration;

use assay_database::Database;
use assay_proto::Fault;
use assay_runtime::Runtime;
use metrics::{Unit, describe_counter, describe_gauge, gauge};

use super::{Kind, Quota, store};

/// Interval of the task.
const INTERVAL: Duration = Duration::from_secs(10);

const USED: &str = "assay_quota_used";
const LARGEST: &str = "assay_quota_largest_share";
pub(super) const REFUSED: &str = "assay_quota_refused_total";

/// Starts the task. Every replica exports the metrics of all customers.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, quota: &Quota) {
    describe_metrics();
    let quota = quota.clone();
    let failure = "cannot add up what customers have stored";
    database.every(runtime, "quota", INTERVAL, failure, move |_| {
        let quota = quota.clone();
        async move { round(&quota).await }
    });
}

#[expect(clippy::cast_precision_loss, reason = "metrics")]
async fn round(quota: &Quota) -> Result<(), Fault> {
    store::add_up(&quota.0.db).await?;
    let totals = store::totals(&quota.0.db).await?;
    for kind in Kind::ALL {
        let name = kind.name();
        let found = totals.iter().find(|(found, ..)| found == name);
        let (sum, largest) = found.map_or((0, 0), |(_, sum, largest)| (*sum, *largest));
        gauge!(USED, "kind" => name).set(sum as f64);
        let share = quota.limit(kind).map_or(0.0, |limit| largest as f64 / limit as f64);
        gauge!(LARGEST, "kind" => name).set(share);
    }
    Ok(())
}

fn describe_metrics() {
    describe_gauge!(
        USED,
        Unit::Count,
        "Bytes, or executions, that clients of all customers have left behind, by kind."
    );
    describe_gauge!(
        LARGEST,
        Unit::Count,
        "Share of its limit that the customer with the most has reached, from 0 to 1, by kind."
    );
    describe_counter!(
        REFUSED,
        Unit::Count,
        "Requests that were refused because a customer has reached a limit, by kind."
    );
    for kind in Kind::ALL {
        metrics::counter!(REFUSED, "kind" => kind.name()).increment(0);
    }
}
