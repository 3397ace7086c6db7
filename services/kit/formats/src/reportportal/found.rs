//! Finds tests, and failures that no test explains, in the trees of items.

use std::collections::HashMap;

use super::{ItemId, attempt, item::Item, tree::Tree};
use crate::{
    Test,
    limits::{DEEPEST, MESSAGE},
};

/// Maximum size of the names on the way to an item, in bytes.
const PATH: usize = 2 * MESSAGE;

/// The place in which retries of a test are sought: below the same item, or below items with the same names.
type Place = (Option<ItemId>, Vec<String>);

impl Tree {
    /// Returns the tests in the order of their starts, depth first; separately those that have not
    /// finished and could still turn out to contain tests.
    pub(super) fn tests(&mut self) -> (Vec<Test>, Vec<Test>) {
        let mut found = Vec::new();
        let roots = self.children.get(&None).cloned().unwrap_or_default();
        self.find(&roots, 1, &mut found);
        let mut tests: Vec<(Test, bool)> = Vec::with_capacity(found.len());
        // The last test of each identity in each place, which retries belong to.
        let mut last: HashMap<(Place, String), usize> = HashMap::new();
        for id in found {
            let (item, path) = (&self.items[&id], self.path(id));
            let identity = item.own_identity().unwrap_or_else(|| path.join("/"));
            let attempt = attempt::of(self, id);
            let key = (self.place(item, &path), identity.clone());
            let is_certain = item.finished.is_some() || item.is_step();
            let retried = last.get(&key).copied().filter(|_| item.is_retry || self.has_reruns);
            if let Some(index) = retried {
                let (test, was_certain) = &mut tests[index];
                test.push(attempt);
                item.issue().clone_into(&mut test.comment);
                *was_certain |= is_certain;
            } else {
                last.insert(key, tests.len());
                tests.push((attempt::test(item, identity, path, attempt), is_certain));
            }
            self.mark(id);
        }
        let (certain, uncertain): (Vec<_>, Vec<_>) =
            tests.into_iter().partition(|(_, is_certain)| *is_certain);
        let tests = |found: Vec<(Test, bool)>| found.into_iter().map(|(test, _)| test).collect();
        (tests(certain), tests(uncertain))
    }

    /// Returns the place of an item with this path. When tests are run again, the items around them start
    /// again, too, so that only their names are the same. The identity of a test alone may be that of
    /// others: Playwright has the same one in all projects, which are suites.
    fn place(&self, item: &Item, path: &[String]) -> Place {
        match path.split_last() {
            Some((_, around)) if self.has_reruns => (None, around.to_vec()),
            _ => (item.parent, Vec::new()),
        }
    }

    /// Finds the tests among items at this depth and below them.
    fn find(&self, items: &[ItemId], depth: usize, found: &mut Vec<ItemId>) {
        for id in items {
            if self.is_test(*id) {
                found.push(*id);
            } else if depth < DEEPEST {
                self.find(self.children(*id), depth + 1, found);
            }
        }
    }

    /// Returns the name of an item behind those of the items around it, outermost first. Of long names,
    /// only the innermost ones: every test has a copy.
    fn path(&self, id: ItemId) -> Vec<String> {
        let (mut path, mut room, mut next) = (Vec::new(), PATH, Some(id));
        while let Some(item) = next.map(|id| self.item(id)) {
            let Some(left) = room.checked_sub(item.name.len()) else { break };
            (room, next) = (left, item.parent);
            path.push(item.name.clone());
        }
        path.reverse();
        path
    }

    /// Whether an item is a test: it counts and contains no item that does, or is a scenario with its
    /// steps.
    fn is_test(&self, id: ItemId) -> bool {
        let mut counted = self.counted(id).peekable();
        let is_leaf = counted.peek().is_none();
        let mut are_steps =
            counted.map(|child| self.item(child).is_step() && self.counted(child).next().is_none());
        self.item(id).can_be_test() && (is_leaf || self.is_gherkin && are_steps.all(|is| is))
    }

    fn counted(&self, id: ItemId) -> impl Iterator<Item = ItemId> {
        self.children(id).iter().copied().filter(|child| self.item(*child).is_counted())
    }

    /// Marks an item and everything below it as reported.
    fn mark(&mut self, id: ItemId) {
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if self.reported.insert(id) {
                open.extend(self.children(id));
            }
        }
    }

    /// Returns an entry for each hook and suite that failed, unless the failures of tests explain it: a
    /// failed setup fails its tests, and a suite fails with what it contains.
    pub(super) fn failures(&mut self) -> Vec<Test> {
        let mut found = Vec::new();
        let roots = self.children.get(&None).cloned().unwrap_or_default();
        self.find_failures(&roots, 1, &mut found);
        let entry = |id: ItemId| {
            let mut path = self.path(id);
            let name = path.pop().unwrap_or_default();
            let attempts = vec![attempt::of(self, id)];
            self.mark(id);
            Test { suites: path, name, attempts, ..Test::default() }
        };
        found.into_iter().map(entry).collect()
    }

    /// Finds failures among items and below them. Returns whether any of them failed.
    fn find_failures(&self, items: &[ItemId], depth: usize, found: &mut Vec<ItemId>) -> bool {
        let (hooks, others): (Vec<ItemId>, Vec<ItemId>) =
            items.iter().partition(|id| self.item(**id).is_hook() && !self.reported.contains(*id));
        let mut has_failed = false;
        for id in others {
            let is_test = self.reported.contains(&id);
            let has_own = self.item(id).failure().is_some();
            let is_explained = if is_test || depth >= DEEPEST {
                has_own
            } else {
                self.find_failures(self.children(id), depth + 1, found)
            };
            if has_own && !is_explained {
                found.push(id);
            }
            has_failed |= has_own || is_explained;
        }
        let has_failed_test = has_failed;
        for id in hooks {
            let item = self.item(id);
            if item.failure().is_some() && !(item.is_setup() && has_failed_test) {
                found.push(id);
                has_failed = true;
            }
        }
        has_failed
    }

    /// Returns the items that are not part of a test, in the order of their arrival.
    pub(super) fn outside(&self) -> Vec<&Item> {
        let outside = self.items.iter().filter(|(id, _)| !self.reported.contains(id));
        let mut outside: Vec<&Item> = outside.map(|(_, item)| &**item).collect();
        outside.sort_by_key(|item| item.sequence);
        outside
    }
}
