//! The verdict of the execution, by the rules of its test set.

use assay_client::Client;
use reqwest::Method;
use serde::Deserialize;

use crate::execution::Execution;

/// The verdict of an ended execution.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) has_passed: bool,
    /// The rules that are not met, with what was found.
    pub(crate) unmet: Vec<String>,
    /// The verdict for people.
    pub(crate) markdown: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    state: String,
    rules: Vec<Outcome>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Outcome {
    rule: String,
    is_met: bool,
    message: String,
}

/// Returns the verdict of an execution.
pub(crate) async fn verdict(client: &Client, execution: &Execution) -> anyhow::Result<Verdict> {
    let path = format!("{}/verdict", execution.path());
    let get = |path: &str| {
        let path = path.to_owned();
        client.send_reliably(move |client| client.request(Method::GET, &path))
    };
    let Answer { state, rules } = get(&path).await?.json().await?;
    let markdown = get(&format!("{path}.md")).await?.text().await?;
    let unmet = rules.into_iter().filter(|rule| !rule.is_met);
    let unmet = unmet.map(|Outcome { rule, message, .. }| format!("{rule}: {message}")).collect();
    Ok(Verdict { has_passed: state == "Passed", unmet, markdown })
}
