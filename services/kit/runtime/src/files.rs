//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of files that is enough for every program. Commands that programs start inherit the
/// limit, and some of them iterate over all numbers below it.
const ENOUGH: u64 = 65_536;

/// Raises the limit of open files and connections of the process, as far as the system allows. The
/// default of many systems is 1,024.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let limit = maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if current.is_some_and(|current| current < limit)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum })
    {
        tracing::warn!(%error, "the limit of open files stays at {}", current.unwrap_or_default());
    }
}
