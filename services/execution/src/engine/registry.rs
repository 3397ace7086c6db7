//! The engines that have asked for work at this program, until they are stored.
//!
//! Many engines ask every few seconds. So a request only notes the engine in memory, and one statement
//! stores all of them. A program that ends loses a few seconds of what the next requests say again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use assay_proto::{CustomerId, Fault, execution::LeaseInput};
use sqlx::PgPool;

use super::store::{self, MOST_ENGINES, Seen};

/// The engines by their names, of each customer.
type Noted = HashMap<CustomerId, HashMap<String, Seen>>;

/// The engines that were noted. A customer has at most as many as are stored, so that none leaves no place for
/// those of others.
#[derive(Clone, Default)]
pub(crate) struct Registry(Arc<Mutex<Noted>>);

impl Registry {
    /// Notes that an engine asks for work. The input has its defaults.
    pub(crate) fn note(&self, customer: CustomerId, input: &LeaseInput) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen.entry(customer).or_default();
        if seen.len() >= MOST_ENGINES && !seen.contains_key(input.engine()) {
            return;
        }
        let engine = Seen {
            customer,
            name: input.engine().to_owned(),
            target_group: input.target_group().to_owned(),
            labels: input.labels.clone(),
            project_ids: input.project_ids.clone(),
            version: input.version().to_owned(),
        };
        seen.insert(engine.name.clone(), engine);
    }

    /// Stores the engines that were noted since the last time.
    pub(crate) async fn store(&self, db: &PgPool) -> Result<(), Fault> {
        let seen = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut seen: Vec<Seen> = seen.into_values().flat_map(HashMap::into_values).collect();
        if seen.is_empty() {
            return Ok(());
        }
        // Replicas lock the rows in the same order.
        seen.sort_unstable_by(|one, other| {
            (one.customer.0, &one.name).cmp(&(other.customer.0, &other.name))
        });
        store::upsert(db, &seen).await?;
        store::prune(db, &seen).await
    }
}
