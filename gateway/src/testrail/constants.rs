//! Lists that clients read, and of which Assay has nothing: each with one record.

use serde_json::{Value, json};

/// Returns the priorities of test cases.
pub(super) fn priorities() -> Value {
    json!([{ "id": 2, "name": "Medium", "short_name": "Medium", "priority": 2, "is_default": true }])
}

/// Returns the types of test cases.
pub(super) fn case_types() -> Value {
    json!([{ "id": 1, "name": "Automated", "is_default": true }])
}

/// Returns the templates of test cases.
pub(super) fn templates() -> Value {
    json!([{ "id": 1, "name": "Test Case (Steps)", "is_default": true }])
}
