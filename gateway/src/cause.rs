//! What is behind an error.

use std::{error::Error, iter::successors};

/// Whether the error, or one that caused it, is an `E`.
pub(crate) fn caused_by<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    successors(Some(error), |&error| error.source()).any(<dyn Error>::is::<E>)
}
