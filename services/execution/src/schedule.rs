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
    /// That of the test set; work of a higher one comes first.
    pub(crate) priority: i16,
}

impl Destination {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let group = snapshot.environment.as_ref().map(|environment| &environment.target_group);
        Self {
            target_group: group.cloned().unwrap_or_default(),
            needs_public_ip: snapshot.subject.as_ref().is_some_and(|s| s.needs_public_ip),
            priority: priority(snapshot.priority.as_deref().unwrap_or_default()),
        }
    }
}

/// Returns the place in the queue that the priority of a test set means.
fn priority(text: &str) -> i16 {
    match text.trim().to_lowercase().as_str() {
        "highest" => 2,
        "high" => 1,
        "low" => -1,
        "lowest" => -2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn a_priority_in_other_words_is_a_normal_one() {
        let order = ["Lowest", "low", "", "HIGH", " highest "].map(priority);
        assert!(order.is_sorted() && order[0] < order[4]);
        for other in ["Medium", "7", "as soon as possible"] {
            assert_eq!(priority(other), priority(""));
        }
    }
}
