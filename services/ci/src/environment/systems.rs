//! The CI systems, and the variables that they document.

mod forges;
mod servers;

use super::{System, files, refine};

/// A system without variables.
const NONE: System = System {
    name: "",
    markers: &[],
    load: files::none,
    server: "",
    repository: "",
    run: &[],
    job: &[],
    shard: ("", ""),
    branch: "",
    tag: "",
    fork: ("", ""),
    commit: "",
    build: "",
    url: "",
    may_repeat: false,
    refine: refine::nothing,
};

/// Returns all systems, with one that can run within another in front of it.
pub(super) fn systems() -> impl Iterator<Item = &'static System> {
    forges::SYSTEMS.iter().chain(&servers::SYSTEMS)
}
