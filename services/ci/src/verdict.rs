//! The verdict of the execution, by the rules of its test set.

use anyhow::Context;
use assay_client::{Client, Foreign};
use reqwest::Method;
use serde::Deserialize;

use crate::execution::Execution;

/// Maximum size of a verdict, in bytes.
const LARGEST: u64 = 16 << 20;

/// The verdict of an ended execution.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Verdict {
    state: Foreign,
    pub(crate) rules: Vec<Outcome>,
    pub(crate) changes: Option<Changes>,
    #[serde(default)]
    pub(crate) new_failures: Vec<NewFailure>,
}

/// Outcome of a rule.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Outcome {
    pub(crate) rule: Foreign,
    pub(crate) is_met: bool,
    pub(crate) message: Foreign,
}

/// Numbers of test cases whose result has changed, or does not count.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub(crate) struct Changes {
    pub(crate) fixed: u32,
    pub(crate) flaky: u32,
    pub(crate) muted: u32,
    pub(crate) muted_flaky: u32,
}

/// A test case that newly fails.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct NewFailure {
    pub(crate) test_case_identifier: Foreign,
    #[serde(default)]
    pub(crate) headline: Foreign,
}

impl Verdict {
    pub(crate) fn has_passed(&self) -> bool {
        self.state.raw() == "Passed"
    }
}

/// Returns the verdict of an execution.
pub(crate) async fn verdict(client: &Client, execution: &Execution) -> anyhow::Result<Verdict> {
    let path = format!("{}/verdict", execution.path());
    let answer = client.send_reliably(|client| client.request(Method::GET, &path)).await?;
    answer.json(LARGEST).await.context("the verdict")
}
