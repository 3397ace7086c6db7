//! Room for files that are arriving. Nothing in the database counts them yet.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use assay_proto::{CustomerId, Fault};
use assay_storage::Claim;
use futures::FutureExt;

use super::{Kind, Quota};

/// Room for a file of a customer. It is free again when this is dropped.
pub(crate) struct Reserved(Arc<Held>);

struct Held {
    quota: Quota,
    customer: CustomerId,
    bytes: AtomicI64,
}

impl Quota {
    /// Reserves room for a file that is about to arrive, of a size that its client may have announced. Refuses a customer
    /// that has less than this, or nothing, left.
    pub(crate) async fn reserve(
        &self,
        customer: CustomerId,
        announced: u64,
    ) -> Result<Reserved, Fault> {
        let held = Held { quota: self.clone(), customer, bytes: AtomicI64::new(0) };
        let announced = i64::try_from(announced).map_err(Fault::internal)?;
        held.grow(announced, announced).await?;
        Ok(Reserved(Arc::new(held)))
    }
}

impl Reserved {
    /// Returns what reserves room for more bytes of the file.
    pub(crate) fn claim(&self) -> Claim {
        let held = self.0.clone();
        Box::new(move |wanted| {
            let held = held.clone();
            async move {
                let wanted = i64::try_from(wanted).map_err(Fault::internal)?;
                Ok(held.grow(1, wanted).await?.unsigned_abs())
            }
            .boxed()
        })
    }

    /// Counts the file, which is an artifact now, instead of its room.
    pub(crate) fn count(self, size: i64) {
        let Held { quota, customer, .. } = &*self.0;
        quota.state().count(*customer, Kind::Artifacts, size);
    }
}

impl Held {
    /// Reserves room for up to `wanted` bytes, `least` at least. Returns for how many.
    async fn grow(&self, least: i64, wanted: i64) -> Result<i64, Fault> {
        self.quota.read(self.customer, Kind::Artifacts).await?;
        let mut state = self.quota.state();
        let left = state.left(&self.quota, self.customer, Kind::Artifacts)?;
        if left.is_some_and(|left| least > left) {
            return Err(self.quota.refused(Kind::Artifacts));
        }
        let taken = left.map_or(wanted, |left| left.min(wanted));
        *state.reserved.entry(self.customer).or_default() += taken;
        self.bytes.fetch_add(taken, Ordering::Relaxed);
        Ok(taken)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.quota.state();
        if let Some(sum) = state.reserved.get_mut(&self.customer) {
            *sum -= self.bytes.load(Ordering::Relaxed);
            if *sum <= 0 {
                state.reserved.remove(&self.customer);
            }
        }
    }
}
