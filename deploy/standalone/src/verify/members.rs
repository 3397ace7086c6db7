//! Users and user groups of the identity service, compared with the notifications of their creation and deletion. No
//! other service has a list of them: a deleted user stays named in the executions that the user has started.

use std::fmt::Display;

use anyhow::Result;
use futures::TryStreamExt;

use super::Databases;

/// Number of users and groups that one statement compares.
const SLICE: usize = 1000;

/// Reports users and groups that were created but that identity lacks, or that were deleted but that it has. Returns
/// their number.
pub(super) async fn compare(
    Databases { identity, notification, .. }: &Databases,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let mut differences = 0;
    let mut slices = assay_notification::members(notification).try_chunks(SLICE);
    while let Some(slice) = slices.try_next().await.map_err(|error| error.1)? {
        for difference in assay_identity::compare_members(identity, &slice).await? {
            report(&difference);
            differences += 1;
        }
    }
    Ok(differences)
}
