//! Identities of items that were reported to ReportPortal itself, and are read from it.

use serde_json::Value;

use super::item::Item;
use crate::{Test, names::named};

/// Returns the identifier of the test that an item is, as launches that are reported to Assay have it. `item` has
/// the fields of the request that starts it. `path` has the names of the items around it, outermost first, and its
/// own name at the end.
pub fn identifier(item: &Value, path: &[String]) -> String {
    let mut started = Item::default();
    started.start(None, 0, item);
    let path = || path.iter().map(|name| named(name)).collect::<Vec<_>>().join("/");
    let id = started.own_identity().unwrap_or_else(path);
    Test { id, ..Test::default() }.identifier()
}

/// Returns the identifier of the entry for a hook that failed.
pub fn hook_identifier(path: &[String]) -> String {
    let mut suites: Vec<String> = path.iter().map(|name| named(name)).collect();
    let name = suites.pop().unwrap_or_default();
    Test { suites, name, ..Test::default() }.identifier()
}
