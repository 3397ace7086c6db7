//! Suites, labels and links of tests.

use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Classification {
    /// Names of the suites that contain the test, outermost first.
    pub(crate) suites: Vec<String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) links: Vec<RecordLink>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) value: String,
}

/// A link to a record of another system, which has a URL or an id.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct RecordLink {
    pub(crate) kind: String,
    pub(crate) target: String,
}
