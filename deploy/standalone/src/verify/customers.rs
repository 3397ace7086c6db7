//! Customers of the identity service, compared with what the others have stored of them.

use std::{collections::HashMap, fmt::Display};

use anyhow::Result;
use assay_catalog::Wrong;
use assay_events::{KnownCustomer, list_live};
use sqlx::PgPool;

use super::{DELETE_AGAIN, Databases, SEARCHED};

/// Reports the differences, and repairs those whose source is known if asked for. Returns the number of customers, and
/// that of differences.
pub(super) async fn compare(
    databases: &Databases,
    wrong: Wrong,
    mut report: impl FnMut(&dyn Display),
) -> Result<(u64, u64)> {
    let (mut customers, mut differences, mut after) = (0, 0, None);
    loop {
        let known = assay_identity::customers(&databases.identity, after).await?;
        let Some(last) = known.last() else { break };
        after = Some(last.id());
        customers += known.iter().map(|one| u64::from(!one.is_deleted)).sum::<u64>();
        for difference in compare_known(databases, &known, wrong).await? {
            report(&difference);
            differences += 1;
        }
    }
    if wrong == Wrong::Kept {
        for (service, db, live) in [
            ("the catalog", &databases.catalog, assay_catalog::LIVE_CUSTOMERS),
            ("the execution service", &databases.execution, assay_execution::LIVE_CUSTOMERS),
            (
                "the notification service",
                &databases.notification,
                assay_notification::LIVE_CUSTOMERS,
            ),
        ] {
            differences += find_lost(&databases.identity, (service, db, live), &mut report).await?;
        }
    }
    Ok((customers, differences))
}

/// Describes what services have stored otherwise of customers.
async fn compare_known(
    Databases { catalog, execution, notification, .. }: &Databases,
    known: &[KnownCustomer],
    wrong: Wrong,
) -> Result<Vec<String>> {
    let mut differing = Vec::new();
    if wrong == Wrong::Kept {
        for (service, deleted) in [
            ("the catalog", assay_catalog::deleted_customers(catalog, known).await?),
            ("the execution service", assay_execution::deleted_customers(execution, known).await?),
            (
                "the notification service",
                assay_notification::deleted_customers(notification, known).await?,
            ),
        ] {
            differing.extend(deleted.iter().map(|id| {
                format!(
                    "customer {id}: {service} has deleted it, but identity has it again: \
                     {DELETE_AGAIN}"
                )
            }));
        }
    }
    let repairs = wrong == Wrong::Repaired;
    let of_catalog = assay_catalog::compare_appliances(catalog, known, repairs).await?;
    differing.extend(of_catalog.iter().map(|one| format!("{one} (in the catalog)")));
    let of_execution = assay_execution::compare_customers(execution, known, repairs).await?;
    differing.extend(of_execution.iter().map(|one| format!("{one} (in the execution service)")));
    Ok(differing)
}

/// Reports customers of which a service has records, but that identity lacks or has deleted.
async fn find_lost(
    identity: &PgPool,
    (service, db, live): (&str, &PgPool, &'static str),
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let (mut differences, mut after) = (0, None);
    loop {
        let found = list_live(db, live, after).await?;
        let Some(last) = found.last() else { return Ok(differences) };
        after = Some(*last);
        let ids: Vec<_> = found.iter().map(|(customer, _)| *customer).collect();
        let known = assay_identity::find_customers(identity, &ids).await?;
        let known: HashMap<_, _> = known.iter().map(|one| (one.id(), one.is_deleted)).collect();
        for id in ids {
            let difference = match known.get(&id) {
                Some(false) => continue,
                Some(true) => format!(
                    "customer {id}: identity has deleted it, but {service} has not: {SEARCHED}"
                ),
                None => format!(
                    "customer {id}: {service} has records of it, but identity lacks it: restore a \
                     later backup of identity"
                ),
            };
            report(&difference);
            differences += 1;
        }
    }
}
