//! Schedules: the work of engines, one for each report of an execution in mode `Dispatch`.

pub mod queue;
pub mod store;

use std::collections::HashMap;

use assay_proto::{
    ExecutionId, PoolId, ProjectId, ScheduleId, TestReportId,
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
    /// subject name, which all test cases need.
    pub fn need(
        &mut self,
        of_subject: &[String],
        cases: &[SnapshotTestCase],
        pools: &HashMap<String, PoolId>,
    ) {
        for case in cases {
            let of_plan = case.variables.iter().map(|variable| &variable.pool_name);
            let needed: Vec<PoolId> =
                of_plan.chain(of_subject).filter_map(|name| pools.get(name)).copied().collect();
            if !needed.is_empty() {
                self.pooled.insert(case.id.clone(), self.queue.with_pools(needed));
            }
        }
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
    use super::priority;

    #[test]
    fn unknown_priorities_are_normal() {
        let order = ["Lowest", "low", "", "HIGH", " highest "].map(priority);
        assert!(order.is_sorted() && order[0] < order[4]);
        for other in ["Medium", "7", "as soon as possible"] {
            assert_eq!(priority(other), priority(""));
        }
    }
}
