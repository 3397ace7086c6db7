//! The trees of items.

use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

use super::{ItemId, item::Item};

/// The items of a launch, with their children.
pub(super) struct Tree {
    pub(super) items: HashMap<ItemId, Box<Item>>,
    pub(super) children: HashMap<Option<ItemId>, Vec<ItemId>>,
    pub(super) is_gherkin: bool,
    /// Whether tests were run again. A test that is named again below items with the same names is a
    /// further attempt.
    pub(super) has_reruns: bool,
    /// The items whose texts are those of a test.
    pub(super) reported: HashSet<ItemId>,
}

impl Tree {
    pub(super) fn of(
        mut items: HashMap<ItemId, Box<Item>>,
        is_gherkin: bool,
        has_reruns: bool,
    ) -> Self {
        let started = |item: &Item| item.sequence.is_some();
        let known: HashSet<ItemId> =
            items.iter().filter(|(_, item)| started(item)).map(|(id, _)| *id).collect();
        let mut children: HashMap<Option<ItemId>, Vec<ItemId>> = HashMap::new();
        for (id, item) in items.iter_mut().filter(|(_, item)| started(item)) {
            // The request that starts the parent may have failed.
            item.parent = item.parent.filter(|parent| known.contains(parent) && parent != id);
            children.entry(item.parent).or_default().push(*id);
        }
        let parents: HashSet<ItemId> = children.keys().filter_map(|parent| *parent).collect();
        for siblings in children.values_mut() {
            siblings.sort_by_key(|id| {
                let item = &items[id];
                (item.start.map(|start| start.0), item.is_retry, item.sequence)
            });
            remove_repeated(siblings, &items, &parents);
        }
        Self { items, children, is_gherkin, has_reruns, reported: HashSet::new() }
    }

    pub(super) fn item(&self, id: ItemId) -> &Item {
        &self.items[&id]
    }

    /// Returns the children of an item in the order of their starts.
    pub(super) fn children(&self, id: ItemId) -> &[ItemId] {
        self.children.get(&Some(id)).map_or(&[], Vec::as_slice)
    }
}

/// Removes the items that were started by a repeated request: nothing refers to them, but to the
/// other one.
fn remove_repeated(
    siblings: &mut Vec<ItemId>,
    items: &HashMap<ItemId, Box<Item>>,
    parents: &HashSet<ItemId>,
) {
    let is_used = |id: &ItemId| items[id].is_used() || parents.contains(id);
    if siblings.iter().all(is_used) {
        return;
    }
    let mut by_use = siblings.clone();
    by_use.sort_by_key(|id| Reverse(is_used(id)));
    let mut started = HashSet::with_capacity(siblings.len());
    let is_kept = |id: &ItemId| started.insert(items[id].request()) || is_used(id);
    let kept: HashSet<ItemId> = by_use.into_iter().filter(is_kept).collect();
    siblings.retain(|id| kept.contains(id));
}
