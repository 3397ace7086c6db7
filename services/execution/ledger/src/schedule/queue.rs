//! Queues: the queued work of a customer that needs the same labels, the same exclusive environment, and
//! values of the same pools.
//!
//! The name of a queue states what it needs. So engines find the queues that they serve by their names,
//! of which there are few, and take work off one of them with an index. Work that needs nothing but a
//! target group is in the queue of that name.

use std::{cmp::Reverse, collections::BTreeSet};

use assay_proto::{EnvironmentId, PoolId, ProjectId, ScheduleId, catalog::SnapshotEnvironment};
use uuid::Uuid;

/// Separates labels.
const LABEL: char = '\u{1f}';

/// Precedes the id of an exclusive environment.
const EXCLUSIVE: char = '\u{1e}';

/// Precedes the id of each pool.
const POOL: char = '\u{1d}';

/// The name of a queue: labels, the id of an exclusive environment, and those of pools.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueName(String);

impl QueueName {
    /// Returns the queue of the work in an environment: its target group is the first label.
    pub fn of(environment: Option<&SnapshotEnvironment>) -> Self {
        let Some(environment) = environment else { return Self(String::new()) };
        let group = &environment.target_group;
        let mut labels: Vec<&str> = environment.labels.iter().map(String::as_str).collect();
        labels.retain(|label| label != group);
        labels.sort_unstable();
        labels.dedup();
        let group = Some(group.as_str()).filter(|group| !group.is_empty());
        let labels: Vec<_> = group.into_iter().chain(labels).collect();
        let mut name = labels.join(&LABEL.to_string());
        if environment.exclusive {
            name.push(EXCLUSIVE);
            name.push_str(&environment.id);
        }
        Self(name)
    }

    /// Returns the queue of the work of this one that needs values of pools.
    #[must_use]
    pub fn with_pools(&self, pools: &BTreeSet<PoolId>) -> Self {
        let mut name = self.0.clone();
        for pool in pools {
            name.push(POOL);
            name.push_str(&pool.to_string());
        }
        Self(name)
    }

    /// Returns a queue by its name.
    pub fn stored(name: String) -> Self {
        Self(name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the label by which engines are notified; empty for work without labels.
    pub fn first_label(&self) -> &str {
        self.0.split([LABEL, EXCLUSIVE, POOL]).next().unwrap_or_default()
    }

    /// Returns the labels, without the empty one of work that needs none.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let labels = self.0.split([EXCLUSIVE, POOL]).next().unwrap_or_default();
        labels.split(LABEL).filter(|label| !label.is_empty())
    }

    /// Returns the environment that only one test at a time may use, if there is one.
    pub fn exclusive(&self) -> Option<EnvironmentId> {
        let (_, rest) = self.0.split_once(EXCLUSIVE)?;
        let id = rest.split(POOL).next().unwrap_or_default();
        Uuid::parse_str(id).ok().map(EnvironmentId)
    }

    /// Returns the pools of which each test needs a value, in the order of their ids.
    pub fn pools(&self) -> Vec<PoolId> {
        let ids = self.0.split(POOL).skip(1);
        ids.filter_map(|id| Uuid::parse_str(id).ok().map(PoolId)).collect()
    }

    /// Whether its work uses something that one test at a time may use.
    pub fn is_limited(&self) -> bool {
        self.0.contains([EXCLUSIVE, POOL])
    }

    /// Returns whether an engine that offers these labels may do the work. One that offers the empty
    /// label does work that needs none.
    pub fn is_served_by(&self, offered: &[String]) -> bool {
        let offers = |label: &str| offered.iter().any(|offered| offered == label);
        // A target group may have any characters.
        offers(&self.0) || offers(self.first_label()) && self.labels().all(offers)
    }
}

/// The place of work among that of all queues: the higher priority first, then the older work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(pub Reverse<i16>, pub ScheduleId);

/// The work of a queue, or that of one project in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePart {
    pub queue: QueueName,
    /// None for the work of all projects.
    pub project: Option<ProjectId>,
    /// The place of its first work.
    pub first: Rank,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(target_group: &str, labels: &[&str], exclusive: bool) -> QueueName {
        QueueName::of(Some(&SnapshotEnvironment {
            id: "019cade2-11c0-7c16-bf3e-17fae47e173e".to_owned(),
            target_group: target_group.to_owned(),
            labels: labels.iter().map(ToString::to_string).collect(),
            exclusive,
            ..SnapshotEnvironment::default()
        }))
    }

    fn serves(offered: &[&str], queue: &QueueName) -> bool {
        let offered: Vec<_> = offered.iter().map(ToString::to_string).collect();
        queue.is_served_by(&offered)
    }

    #[test]
    fn a_target_group_is_one_label() {
        for group in ["", "linux", "a\u{1f}b", "a\u{1e}b"] {
            let plain = queue(group, &[], false);
            assert_eq!(plain.as_str(), group);
            assert!(serves(&[group], &plain));
            assert!(!serves(&["other"], &plain));
        }
        assert_eq!(QueueName::of(None), queue("", &[], false));
        assert_eq!(queue("", &["linux"], false), queue("linux", &[], false));
        assert_eq!(queue("linux", &["linux"], false), queue("linux", &[], false));
    }

    #[test]
    fn engines_serve_queues_whose_labels_they_all_offer() {
        let both = queue("linux", &["gpu"], false);
        assert!(serves(&["gpu", "linux", "usb"], &both));
        assert!(!serves(&["linux"], &both) && !serves(&["gpu"], &both) && !serves(&[""], &both));
        assert!(!serves(&["gpu", "linux"], &queue("", &[], false)));
        assert!(serves(&["", "gpu"], &queue("", &[], false)));
        assert_eq!(both, queue("linux", &["gpu", "gpu"], false));
        assert_eq!(both.first_label(), "linux");
    }

    #[test]
    fn work_that_needs_pools_has_a_queue_of_its_own() {
        let [one, other] = [PoolId::new(), PoolId::new()];
        for (queue, environment) in
            [(queue("linux", &["gpu"], true), true), (queue("", &[], false), false)]
        {
            let pooled = queue.with_pools(&BTreeSet::from([other, one]));
            assert_eq!(pooled.pools(), [one, other]);
            assert_eq!(pooled.exclusive().is_some(), environment);
            assert_eq!(pooled.first_label(), queue.first_label());
            assert!(pooled.labels().eq(queue.labels()) && pooled.is_limited());
            assert!(serves(&[queue.first_label(), "gpu"], &pooled));
            assert_eq!((queue.pools(), queue.with_pools(&BTreeSet::new())), (vec![], queue));
        }
    }

    #[test]
    fn urgent_work_comes_first_and_then_older_work() {
        let [old, new] = [ScheduleId::new(), ScheduleId::new()];
        let ranks = [(1, old), (1, new), (0, old), (-1, old)];
        assert!(ranks.map(|(priority, id)| Rank(Reverse(priority), id)).is_sorted());
    }

    #[test]
    fn the_order_of_labels_does_not_matter() {
        assert_eq!(queue("", &["b", "a"], false), queue("", &["a", "b"], false));
    }

    #[test]
    fn an_exclusive_environment_has_a_queue_of_its_own() {
        let lab = queue("linux", &["gpu"], true);
        assert_eq!(lab.exclusive().unwrap().to_string(), "019cade2-11c0-7c16-bf3e-17fae47e173e");
        assert_eq!(lab.labels().collect::<Vec<_>>(), ["linux", "gpu"]);
        assert!(serves(&["linux", "gpu"], &lab) && !serves(&["linux"], &lab));
        let none = queue("", &[], true);
        assert!(serves(&[""], &none) && !serves(&["linux"], &none));
        assert_eq!((none.first_label(), none.labels().count()), ("", 0));
        assert_eq!(queue("linux", &[], false).exclusive(), None);
    }
}
