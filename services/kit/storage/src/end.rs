//! The end of a file: the store puts its parts together. A folder writes to the disk what the system has kept in
//! memory, which can be all of the file.

use std::time::Duration;

use assay_proto::Fault;
use object_store::Error;
use tokio::time::sleep;

use crate::{
    arrival::{RENEWAL, Renew},
    call::{TIMEOUT, available, measured_within},
};

/// Number of bytes for each second that the end of a file may take beyond the deadline of other calls.
const SLOWEST: u64 = 16 << 20;

/// Waits for the end of a file of this size, and renews the file meanwhile.
pub(crate) async fn finish<T>(
    end: impl Future<Output = Result<T, Error>>,
    size: i64,
    renew: Renew,
) -> Result<(), Fault> {
    let time = TIMEOUT + Duration::from_secs(size.unsigned_abs() / SLOWEST);
    let renewing = async {
        loop {
            sleep(RENEWAL).await;
            if let Err(fault) = renew().await {
                return fault;
            }
        }
    };
    tokio::select! {
        ended = measured_within("finish", time, end) => available(ended).map(drop),
        fault = renewing => Err(fault),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use futures::FutureExt;

    use super::*;

    /// Waits for the end of a file that takes 90 seconds. Returns the number of renewals, if it comes in time.
    async fn renewals(size: i64) -> Result<usize, Fault> {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let renew: Renew = Box::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }.boxed()
        });
        let end = async {
            sleep(Duration::from_secs(90)).await;
            Ok::<_, Error>(())
        };
        finish(end, size, renew).await?;
        Ok(count.load(Ordering::Relaxed))
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_file_may_take_longer_and_is_renewed_meanwhile() {
        assert!(renewals(100 << 20).await.is_err());
        assert_eq!(renewals(5 << 30).await.unwrap(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_file_that_was_given_up_meanwhile_does_not_end() {
        let renew: Renew = Box::new(|| async { Err(Fault::Unavailable("the upload")) }.boxed());
        let end = std::future::pending::<Result<(), Error>>();
        assert!(matches!(finish(end, 5 << 30, renew).await, Err(Fault::Unavailable("the upload"))));
    }
}
