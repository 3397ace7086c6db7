//! The groups of methods, which a suite lists in front of its tests.

use std::collections::HashMap;

use crate::{Property, TAG, Test, limits::MOST_LABELS, names::named, xml::Attributes};

/// Maximum memory of the groups of a file, in bytes. Further ones are left out.
const LARGEST: usize = 4 << 20;

/// The groups of a file so far.
#[derive(Default)]
pub(super) struct Groups {
    /// Name of the open group.
    open: String,
    /// Groups by class and name of a method.
    of_methods: HashMap<(String, String), Vec<String>>,
    /// Memory of these, in bytes.
    size: usize,
}

impl Groups {
    pub(super) fn open(&mut self, attributes: &Attributes<'_>) {
        self.open = named(&attributes.get("name").unwrap_or_default());
    }

    /// Adds a method to the open group.
    pub(super) fn add(&mut self, attributes: &Attributes<'_>) {
        let text = |name| named(&attributes.get(name).unwrap_or_default());
        let (class, name) = (text("class"), text("name"));
        self.size += class.len() + name.len() + self.open.len() + 128;
        if self.size > LARGEST {
            return;
        }
        let groups = self.of_methods.entry((class, name)).or_default();
        if groups.len() < MOST_LABELS && !groups.contains(&self.open) {
            groups.push(self.open.clone());
        }
    }

    /// Makes the groups of a method its tags.
    pub(super) fn tag(&self, test: &mut Test) {
        if self.of_methods.is_empty() {
            return;
        }
        let groups = self.of_methods.get(&(test.class.clone(), test.name.clone()));
        for group in groups.into_iter().flatten() {
            test.label(Property::new(TAG, group));
        }
    }
}
