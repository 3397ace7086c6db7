//! Projects, test sets and test cases.

use serde::Deserialize;

use super::{classification::Classification, execution::Statistic, gate::Gate, outcome::Outcome};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Project {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) default_branch: String,
    /// The URL of a ticket; `{ticket}` stands for its name. Empty if only URLs are links.
    #[serde(default)]
    pub(crate) ticket_url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestSetEntry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) last_execution_statistic: Option<Statistic>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestSet {
    pub(crate) name: String,
    pub(crate) gate: Gate,
    pub(crate) data_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestCase {
    pub(crate) id: String,
    pub(crate) project_id: String,
    pub(crate) name: String,
    pub(crate) identifier: String,
    pub(crate) description: Option<String>,
    #[serde(flatten)]
    pub(crate) classification: Classification,
}

/// A test case as an entry of a list.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TestCaseEntry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) identifier: String,
    pub(crate) last_result: Option<Outcome>,
    /// Its latest results, newest first.
    pub(crate) execution_statistics: Vec<CaseStatistic>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct CaseStatistic {
    pub(crate) result: Outcome,
}
