//! The page of an execution, as a person reads it.

use std::{collections::HashMap, sync::LazyLock};

use assay_testkit::Answer;
use regex::Regex;
use reqwest::Client;
use serde_json::Value;

use crate::{customer::Customer, world::id};

/// A number with the word beside it, such as `<b>3</b> passed`.
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"<b>([0-9,]+)</b> ([A-Za-z ]+)").unwrap());

/// The words for results on the page, and the names of their numbers in a statistic.
const RESULTS: [(&str, &str); 6] = [
    ("passed", "TestCasesPassed"),
    ("failed", "TestCasesFailed"),
    ("with an error", "TestCasesWithError"),
    ("aborted", "TestCasesAborted"),
    ("skipped", "TestCasesCanceled"),
    ("All", "TestCasesTotal"),
];

/// The contents of the page of an execution.
pub(super) struct Page {
    /// The result beside the title.
    result: String,
    numbers: HashMap<String, u64>,
    says_gate_failed: bool,
}

impl Page {
    pub(super) async fn of(customer: &Customer, execution: &Value) -> Self {
        let url = format!("{}/executions/{}", customer.url(), id(execution));
        let cookie = format!("assay={}", customer.api.token());
        let answer = Answer::of(Client::new().get(url).header("cookie", cookie)).await;
        let html = String::from_utf8_lossy(&answer.expect(200).body).into_owned();
        let (_, badge) = html.split_once("<span class=\"badge").unwrap();
        let (_, badge) = badge.split_once('>').unwrap();
        let (result, _) = badge.split_once('<').unwrap();
        let numbers = NUMBER.captures_iter(&html).map(|number| {
            let [count, word] = number.extract().1;
            (word.trim().to_owned(), count.replace(',', "").parse().unwrap())
        });
        Self {
            result: result.to_owned(),
            numbers: numbers.collect(),
            says_gate_failed: html.contains("Gate failed"),
        }
    }

    /// Returns how the page contradicts its execution.
    pub(super) fn difference(
        &self,
        execution: &Value,
        has_failed: bool,
        fails_gate: bool,
    ) -> Option<String> {
        let is_red = ["Failed", "Error", "Aborted"].contains(&self.result.as_str());
        if is_red != has_failed || self.says_gate_failed != fails_gate {
            let gate = self.says_gate_failed;
            return Some(format!("the page says {}, gate failed: {gate}", self.result));
        }
        RESULTS.into_iter().find_map(|(word, name)| {
            let on_page = self.numbers.get(word).copied().unwrap_or(0);
            let expected = execution["Statistic"][name].as_u64().unwrap();
            (on_page != expected).then(|| format!("the page has {on_page} {word}, not {expected}"))
        })
    }
}
