//! Schedules: the work of engines, one for each report of an execution in mode `Dispatch`.

pub mod queue;
pub mod store;

use std::collections::{BTreeSet, HashMap};

use assay_proto::{
    ExecutionId, Fault, PoolId, ProjectId, ScheduleId, TestReportId,
    catalog::{Snapshot, SnapshotTestCase},
};

use self::queue::QueueName;

/// A schedule, with the records that it belongs to.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Schedule {
    pub id: ScheduleId,
    pub execution_id: ExecutionId,
    pub project_id: ProjectId,
    pub test_report_id: TestReportId,
    /// Name of its queue.
    pub target_group: String,
    /// Maximum duration of an instance, in minutes; 0 for the default.
    pub maximum_duration_in_min: f64,
}

/// Maximum number of pools of which a test needs a value. The name of its queue has their ids, and is part of a key of
/// an index.
pub const MOST_POOLS: usize = 10;

/// The engines that may run an execution, and its rank in their queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Destination {
    pub queue: QueueName,
    /// The queues of the test cases that need values of pools, by their ids.
    pub pooled: HashMap<String, QueueName>,
    /// Whether engines have to be reachable from the internet to test the subject.
    pub needs_public_ip: bool,
    /// The priority of the test set. Work of a higher priority comes first.
    pub priority: i16,
}

impl Destination {
    pub fn of(snapshot: &Snapshot) -> Self {
        Self {
            queue: QueueName::of(snapshot.environment.as_ref()),
            pooled: HashMap::new(),
            needs_public_ip: snapshot.subject.as_ref().is_some_and(|s| s.needs_public_ip),
            priority: priority(snapshot.priority.as_deref().unwrap_or_default()),
        }
    }

    /// Notes the pools that the variables of the test cases name. `of_subject` are those that the variables of the
    /// subject name, which all test cases need. Fails if a test case needs more than [`MOST_POOLS`].
    pub fn need(
        &mut self,
        of_subject: &[String],
        cases: &[SnapshotTestCase],
        pools: &HashMap<String, PoolId>,
    ) -> Result<(), Fault> {
        for case in cases {
            let of_plan = case.variables.iter().map(|variable| &variable.pool_name);
            let needed: BTreeSet<PoolId> =
                of_plan.chain(of_subject).filter_map(|name| pools.get(name)).copied().collect();
            if needed.len() > MOST_POOLS {
                let (name, count) = (&case.name, needed.len());
                let reason = format!(
                    "the test case {name:.100} needs values of {count} pools: at most {MOST_POOLS} are allowed"
                );
                return Err(Fault::Refused { code: "too_many_pools", reason });
            }
            if !needed.is_empty() {
                self.pooled.insert(case.id.clone(), self.queue.with_pools(&needed));
            }
        }
        Ok(())
    }

    /// Returns the queue of a test case.
    pub fn queue_of(&self, test_case: &str) -> &QueueName {
        self.pooled.get(test_case).unwrap_or(&self.queue)
    }
}

/// Returns the priority in the queue that a test set asks for in words.
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
    use assay_proto::{Variable, catalog::SnapshotTestCase};

    use super::*;

    fn case(id: &str, pools: usize) -> SnapshotTestCase {
        let variable = |nr| Variable { pool_name: format!("pool {nr}"), ..Variable::default() };
        let variables = (0..pools).map(variable).collect();
        SnapshotTestCase { id: id.to_owned(), name: id.to_owned(), variables, ..Default::default() }
    }

    #[test]
    fn a_test_needs_values_of_a_bounded_number_of_pools() {
        let pools: HashMap<_, _> =
            (0..=MOST_POOLS).map(|nr| (format!("pool {nr}"), PoolId::new())).collect();
        let mut destination = Destination::of(&Snapshot::default());
        let of_subject = ["pool 0".to_owned(), "no such pool".to_owned()];
        destination.need(&of_subject, &[case("a", MOST_POOLS), case("b", 0)], &pools).unwrap();
        assert_eq!(destination.queue_of("a").pools().len(), MOST_POOLS);
        assert_eq!(destination.queue_of("b").pools(), [pools["pool 0"]]);
        let refused = destination.need(&[], &[case("a", MOST_POOLS + 1)], &pools).unwrap_err();
        assert!(matches!(refused, Fault::Refused { code: "too_many_pools", .. }), "{refused}");
    }

    #[test]
    fn unknown_priorities_are_normal() {
        let order = ["Lowest", "low", "", "HIGH", " highest "].map(priority);
        assert!(order.is_sorted() && order[0] < order[4]);
        for other in ["Medium", "7", "as soon as possible"] {
            assert_eq!(priority(other), priority(""));
        }
    }
}
