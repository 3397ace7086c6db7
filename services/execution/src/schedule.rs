//! Schedules: what engines have to do, one for each report of an execution in mode `Dispatch`.

pub(crate) mod store;

use assay_proto::catalog::Snapshot;

/// Which engines an execution is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Destination {
    /// Those that serve its environment. Without an environment it has no name, and is for engines
    /// that ask for none.
    pub(crate) target_group: String,
    /// Whether the subject has to be reached from outside.
    pub(crate) needs_public_ip: bool,
}

impl Destination {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let group = snapshot.environment.as_ref().map(|environment| &environment.target_group);
        Self {
            target_group: group.cloned().unwrap_or_default(),
            needs_public_ip: snapshot.subject.as_ref().is_some_and(|s| s.needs_public_ip),
        }
    }
}
