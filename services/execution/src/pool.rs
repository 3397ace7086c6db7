//! Pools: values of a project, each of which one test at a time may use. Engines get them with their leases.

mod contents;
mod reseal;
mod rules;
mod service;
mod store;
mod taken;

use std::collections::BTreeSet;

use assay_ledger::{lease::pooled, schedule::Destination};
use assay_proto::{CustomerId, Fault, ProjectId, catalog::SnapshotTestCase};
use sqlx::PgTransaction;

pub use self::reseal::reseal;
pub(crate) use self::{
    service::PoolService,
    taken::{Taken, TakenValues, taken},
};

/// Notes in the destination of an execution the pools that its test cases need: those of its subject, and those of
/// their plans. Names without a pool have no effect.
pub(crate) async fn need(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    destination: &mut Destination,
    of_subject: &[String],
    cases: &[SnapshotTestCase],
) -> Result<(), Fault> {
    let of_plans = cases.iter().flat_map(|case| &case.variables);
    let names = of_plans.map(|variable| &variable.pool_name).chain(of_subject);
    let names: BTreeSet<&str> = names.map(String::as_str).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = names.into_iter().collect();
    let pools = pooled::of_names(tx, customer, project, &names).await?;
    destination.need(of_subject, cases, &pools)
}
