//! Causes of errors.

use std::{error::Error, iter::successors};

/// Returns whether the error or one of its causes is an `E`.
pub(crate) fn caused_by<E: Error + 'static>(error: &(dyn Error + 'static)) -> bool {
    successors(Some(error), |&error| error.source()).any(<dyn Error>::is::<E>)
}
