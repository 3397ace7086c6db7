//! The fields of a notification that not every notification has, as they are stored.

use assay_proto::{Fault, notification::Notification};
use serde_json::{Map, Value};

/// The fields with columns of their own.
const COLUMNS: [&str; 10] = [
    "Id",
    "Source",
    "SourceId",
    "Target",
    "TargetId",
    "Action",
    "State",
    "DataVersion",
    "Archived",
    "Origin",
];

/// Returns the other fields that are set.
pub(super) fn of(notification: &Notification) -> Result<Map<String, Value>, Fault> {
    let json = serde_json::to_value(notification).map_err(Fault::internal)?;
    let Value::Object(mut fields) = json else {
        return Err(Fault::internal("a notification is not an object in JSON"));
    };
    fields.retain(|name, value| {
        let is_set = !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty());
        is_set && !COLUMNS.contains(&name.as_str())
    });
    Ok(fields)
}
