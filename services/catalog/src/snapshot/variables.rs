//! The variables of snapshots: secrets are masked, and contents have to match their rules.

use assay_proto::{
    CustomerId, Fault, SubjectId,
    catalog::{SnapshotSubject, SnapshotTestCase},
};
use assay_records::{Check, below};
use sqlx::{PgExecutor, PgTransaction};

use super::{
    rules::{self, ExecutableCase},
    store,
};
use crate::secrets::{self, Secrets};

/// Copies chosen test cases, in their order, with their secrets masked.
pub(super) async fn copy(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    part: &[ExecutableCase],
) -> Result<Vec<SnapshotTestCase>, Fault> {
    let mut copies = store::copy(db, customer, part).await?;
    for copy in &mut copies {
        copy.variables = secrets::masked(&copy.variables);
    }
    Ok(copies)
}

/// Fails if the content of a variable of the subject or of a plan does not match its rule. Contents are
/// checked when they are written; this check finds those that bypassed it.
pub(super) async fn check(
    tx: &mut PgTransaction<'_>,
    secrets: &Secrets,
    customer: CustomerId,
    subject: Option<&SnapshotSubject>,
    chosen: &[ExecutableCase],
) -> Result<(), Fault> {
    let (mut check, mut checked) = (Check::default(), 0);
    if let Some(subject) = subject {
        let id = SubjectId::from_path(&subject.id)?;
        let variables = store::variables(tx, customer, id).await?;
        let variables = secrets.in_clear("subject", id).show_all(variables)?;
        secrets::check_stored(&mut check, &mut checked, "Subject", &variables);
    }
    let with_rules = chosen.iter().filter(|chosen| chosen.has_rules).copied().collect();
    for part in rules::parts(with_rules) {
        for case in store::copy(&mut **tx, customer, &part).await? {
            let secrets = secrets.in_clear("test-plan", &case.test_plan_id);
            let variables = secrets.show_all(case.variables)?;
            let pointer = below("TestCases", &case.identifier);
            secrets::check_stored(&mut check, &mut checked, &pointer, &variables);
        }
    }
    check.done()
}
