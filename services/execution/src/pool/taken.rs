//! The values that leases have taken, with their contents in clear.

use std::collections::{HashMap, HashSet};

use assay_auth::Seal;
use assay_ledger::lease::pooled;
use assay_proto::{
    CustomerId, Fault, LeaseId, Variable,
    execution::{Lease, PoolContent},
};
use sqlx::PgPool;

use super::contents::Contents;

/// The values that leases have taken, by the ids of the leases and the names of the pools.
#[derive(Default)]
pub(crate) struct TakenValues(HashMap<(String, String), Vec<PoolContent>>);

impl TakenValues {
    /// Gives a variable of the test of a lease the content of the value that the lease has of its pool. Without
    /// one, it keeps its own.
    pub(crate) fn fill(&self, lease: &str, variable: &mut Variable) {
        if variable.pool_name.is_empty() {
            return;
        }
        let key = (lease.to_owned(), variable.pool_name.clone());
        let contents = self.0.get(&key).into_iter().flatten();
        // Names are unique, and the empty one is less than others.
        let fits = contents.filter(|one| one.name.is_empty() || one.name == variable.name);
        if let Some(content) = fits.max_by_key(|one| &one.name) {
            variable.content.clone_from(&content.content);
        }
    }
}

/// The values that leases have taken, and the ids of the leases that cannot be handed over.
#[derive(Default)]
pub(crate) struct Taken {
    pub(crate) values: TakenValues,
    /// Leases whose value was removed from its pool after they had taken it.
    pub(crate) removed: HashSet<String>,
    /// Leases whose value cannot be decrypted.
    pub(crate) unreadable: HashSet<String>,
}

/// Returns what leases have taken.
pub(crate) async fn taken(
    db: &PgPool,
    seal: &Seal,
    customer: CustomerId,
    leases: &[Lease],
) -> Result<Taken, Fault> {
    let leases = leases.iter().map(|lease| LeaseId::from_record(&lease.id));
    let leases: Vec<_> = leases.collect::<Result<_, _>>()?;
    let mut taken = Taken::default();
    for one in pooled::of_leases(db, customer, &leases).await? {
        let lease = one.lease_id.to_string();
        let Some(value) = one.value else {
            taken.removed.insert(lease);
            continue;
        };
        match (Contents { seal, pool: one.pool_id }).open(&value) {
            Ok(contents) => {
                taken.values.0.insert((lease, one.pool_name), contents);
            }
            Err(fault) => {
                tracing::warn!(error = %fault, pool.id = %one.pool_id, "a value cannot be read");
                taken.unreadable.insert(lease);
            }
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_gets_the_content_of_its_name_or_else_the_one_without() {
        let content = |name: &str, content: &str| PoolContent {
            name: name.into(),
            content: content.into(),
            is_secured: false,
        };
        let contents = vec![content("", "any"), content("USER", "ada")];
        let taken = HashMap::from([(("lease".to_owned(), "accounts".to_owned()), contents)]);
        let taken = TakenValues(taken);
        for (lease, pool_name, name, expected) in [
            ("lease", "accounts", "USER", "ada"),
            ("lease", "accounts", "OTHER", "any"),
            ("lease", "", "USER", "own"),
            ("lease", "phones", "USER", "own"),
            ("another", "accounts", "USER", "own"),
        ] {
            let mut variable = Variable {
                pool_name: pool_name.into(),
                name: name.into(),
                content: "own".into(),
                ..Variable::default()
            };
            taken.fill(lease, &mut variable);
            assert_eq!(variable.content, expected, "{lease} {pool_name} {name}");
        }
    }
}
