//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of files that is always enough. Commands that programs run inherit the limit, and some
/// iterate over all numbers below it.
const ENOUGH: u64 = 65_536;

/// Raises the number of files and connections that the program may have open, as far as the system
/// admits. Many systems begin with 1,024.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
    {
        tracing::warn!(%error, "the limit of open files stays at {}", current.unwrap_or_default());
    }
}
