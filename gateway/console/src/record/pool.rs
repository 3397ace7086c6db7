//! Pools of values.

use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Pool {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) values: Vec<PoolValue>,
    /// Number of values that tests use now.
    pub(crate) in_use: i64,
    pub(crate) data_version: String,
}

#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct PoolValue {
    /// Empty for a new value.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) id: String,
    pub(crate) contents: Vec<PoolContent>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct PoolContent {
    /// Name of the variable; empty for all others.
    pub(crate) name: String,
    /// Asterisks in place of a secret.
    pub(crate) content: String,
    pub(crate) is_secured: bool,
}
