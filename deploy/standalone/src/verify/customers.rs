//! Customers of the identity service, compared with what the others have stored of them.

use std::{collections::HashMap, fmt::Display};

use anyhow::Result;
use assay_catalog::Wrong;
use assay_database::begin;
use assay_events::{KnownCustomer, deleted_customers, list_live};
use assay_proto::CustomerId;
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
        let (known, differing) = compare_page(databases, after, wrong).await?;
        let Some(last) = known.last() else { break };
        after = Some(last.id());
        customers += known.iter().map(|one| u64::from(!one.is_deleted)).sum::<u64>();
        for difference in differing {
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

/// Returns the next customers of identity, and describes what services have stored otherwise of them.
async fn compare_page(
    databases: &Databases,
    after: Option<CustomerId>,
    wrong: Wrong,
) -> Result<(Vec<KnownCustomer>, Vec<String>)> {
    let Databases { identity, catalog, execution, .. } = databases;
    let (mut of_catalog, mut of_execution) = (begin(catalog).await?, begin(execution).await?);
    let repairs = wrong == Wrong::Repaired;
    if repairs {
        assay_catalog::lock_appliances(&mut of_catalog).await?;
        assay_execution::lock_customers(&mut of_execution).await?;
    }
    let known = assay_identity::customers(identity, after).await?;
    let mut differing = if repairs { Vec::new() } else { find_restored(databases, &known).await? };
    let found = assay_catalog::compare_appliances(&mut of_catalog, &known, repairs).await?;
    differing.extend(found.iter().map(|one| format!("{one} (in the catalog)")));
    let found = assay_execution::compare_customers(&mut of_execution, &known, repairs).await?;
    differing.extend(found.iter().map(|one| format!("{one} (in the execution service)")));
    of_catalog.commit().await?;
    of_execution.commit().await?;
    Ok((known, differing))
}

/// Describes the customers that services have deleted, but that identity has again.
async fn find_restored(
    Databases { catalog, execution, notification, .. }: &Databases,
    known: &[KnownCustomer],
) -> Result<Vec<String>> {
    let mut restored = Vec::new();
    for (service, deleted) in [
        ("the catalog", deleted_customers(catalog, known).await?),
        ("the execution service", assay_execution::deleted_customers(execution, known).await?),
        ("the notification service", deleted_customers(notification, known).await?),
    ] {
        restored.extend(deleted.iter().map(|id| {
            format!(
                "customer {id}: {service} has deleted it, but identity has it again: {DELETE_AGAIN}"
            )
        }));
    }
    Ok(restored)
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
