//! Reads Kiwi TCMS through JSON-RPC: test cases, runs, their executions, comments and links to defects.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::{remote::Remote, write};
use crate::progress::Progress;

/// Number of test cases in a request.
const CASES: i64 = 2_000;

/// Maximum number of requests for test cases.
const MOST: u32 = 20_000;

/// A session at Kiwi TCMS.
struct Session<'s> {
    remote: &'s Remote,
    cookie: Option<String>,
}

/// Reads a product, or all of them. Executions of runs that have not ended are not read, since the runs are left
/// out; runs that have ended and were read before are not read again.
pub(super) async fn read(
    remote: &Remote,
    login: [&str; 2],
    product: Option<&str>,
    folder: &Path,
) -> Result<Vec<PathBuf>> {
    let mut session = Session { remote, cookie: None };
    let key = session.call("Auth.login", json!(login)).await;
    let key = key.context("cannot log in: check --source-user and --source-token")?;
    session.cookie = Some(format!("sessionid={}", key.as_str().context("no session")?));

    let of_product = |field: &str| product.map_or(json!({}), |name| json!({field: name}));
    let mut files = session.cases(&of_product("category__product__name"), folder).await?;
    let runs = session.call("TestRun.filter", json!([of_product("plan__product__name")])).await?;
    let list = folder.join("runs.json");
    let runs = runs.as_array().context("TestRun.filter returned no list")?.clone();
    write(&list, &serde_json::to_vec(&runs)?)?;
    files.push(list);
    let mut progress = Progress::new("runs read", Some(runs.len() as u64));
    for run in &runs {
        let id = run["id"].as_i64().context("a run has no id")?;
        let file = folder.join(format!("executions-{id}.json"));
        progress.add(1);
        if run["stop_date"].is_null() {
            // A run that was read before has begun again.
            if file.exists() {
                fs::remove_file(&file)?;
            }
            continue;
        }
        if !file.exists() {
            let executions = session.executions(id).await.with_context(|| format!("run {id}"))?;
            write(&file, &serde_json::to_vec(&executions)?)?;
        }
        files.push(file);
    }
    progress.end();
    Ok(files)
}

impl Session<'_> {
    /// Calls a method that only reads.
    async fn call(&self, method: &str, parameters: Value) -> Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
        let mut answer = self.remote.post("/json-rpc/", self.cookie.as_deref(), &body).await?;
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            bail!("{method}: {}", error["message"].as_str().unwrap_or_default());
        }
        let result = answer.get_mut("result").map(Value::take);
        result.with_context(|| format!("{method}: the answer has no result"))
    }

    /// Reads the test cases, some at a time, each time into a file.
    async fn cases(&self, query: &Value, folder: &Path) -> Result<Vec<PathBuf>> {
        let (mut files, mut first) = (Vec::new(), 0_i64);
        let mut progress = Progress::new("test cases read", None);
        for _ in 0..MOST {
            let mut query = query.clone();
            let end = first.checked_add(CASES).context("the id of a test case is too large")?;
            query["id__gte"] = first.into();
            query["id__lt"] = end.into();
            let cases = self.call("TestCase.filter", json!([query])).await?;
            let count = cases.as_array().map_or(0, Vec::len);
            if count > 0 {
                let file = folder.join(format!("cases-{first}.json"));
                write(&file, &serde_json::to_vec(&cases)?)?;
                files.push(file);
                progress.add(count as u64);
                first = end;
                continue;
            }
            // Test cases may have been deleted, or belong to other products.
            query["id__gte"] = first.into();
            if let Some(fields) = query.as_object_mut() {
                fields.remove("id__lt");
            }
            let Some(next) = self.next_case(&query).await? else {
                progress.end();
                return Ok(files);
            };
            ensure!(next >= first, "TestCase.filter returned another test case");
            first = next;
        }
        bail!("Kiwi TCMS has more than {MOST} pages of test cases")
    }

    /// Returns the lowest id of the test cases of a query, if there is one.
    async fn next_case(&self, query: &Value) -> Result<Option<i64>> {
        let rest = self.call("TestCase.filter", json!([query])).await?;
        let ids = rest.as_array().into_iter().flatten();
        Ok(ids.filter_map(|case| case["id"].as_i64()).min())
    }

    /// Reads the executions of a run, with comments of those that have failed, and links to defects.
    async fn executions(&self, run: i64) -> Result<Vec<Value>> {
        let executions = self.call("TestExecution.filter", json!([{"run": run}])).await?;
        let query = json!([{"execution__run": run, "is_defect": true}]);
        let mut links = HashMap::<i64, Vec<Value>>::new();
        let found = self.call("TestExecution.get_links", query).await?;
        for link in found.as_array().into_iter().flatten() {
            if let Some(execution) = link["execution"].as_i64() {
                links.entry(execution).or_default().push(link["url"].clone());
            }
        }
        let mut read = Vec::new();
        for mut execution in executions.as_array().into_iter().flatten().cloned() {
            let id = execution["id"].as_i64().context("an execution has no id")?;
            execution["links"] = links.remove(&id).into();
            let status = execution["status__name"].as_str().unwrap_or_default();
            if !matches!(status, "PASSED" | "IDLE") {
                execution["comments"] =
                    self.call("TestExecution.get_comments", json!([id])).await?;
            }
            read.push(execution);
        }
        Ok(read)
    }
}
