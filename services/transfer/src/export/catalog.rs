//! Exports the records of the catalog: the project, its subjects, environments, test cases with their
//! plans, test sets and known failures.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value, json};

use super::{CONCURRENCY, ids, missing};
use crate::{
    folder::{
        ENVIRONMENTS, Folder, KNOWN_FAILURES, PROJECT, Place, SUBJECTS, TEST_CASES, TEST_SETS,
    },
    interface::Interface,
    progress::Progress,
};

/// Fields of a plan that are not part of its description.
const OF_REPORTS: [&str; 2] = ["TestReports", "ExecutionStatistics"];

/// Exports the records below a project, as far as their files are not complete.
pub(super) async fn export(interface: &Interface, at: &str, folder: &mut Folder) -> Result<()> {
    if !folder.has(&PROJECT) {
        let mut part = folder.begin(&PROJECT)?;
        part.line(&interface.get::<Value>(at).await?)?;
        folder.finish(part)?;
    }
    for (noun, file) in [("subjects", &SUBJECTS), ("environments", &ENVIRONMENTS)] {
        let record = async |path: String| interface.get::<Map<String, Value>>(&path).await;
        records(interface, at, folder, (noun, file), record).await?;
    }
    let case = async |path: String| test_case(interface, &path).await;
    records(interface, at, folder, ("testcases", &TEST_CASES), case).await?;
    let set = async |path: String| test_set(interface, &path).await;
    records(interface, at, folder, ("testsets", &TEST_SETS), set).await?;
    if !folder.has(&KNOWN_FAILURES) {
        let mut part = folder.begin(&KNOWN_FAILURES)?;
        let path = format!("{at}/knownfailures");
        interface.list(&path, |known: Value| part.line(&known)).await?;
        folder.finish(part)?;
    }
    Ok(())
}

/// Exports the active and the archived records of a noun, oldest first. Continues a file that was
/// interrupted.
async fn records<F>(
    interface: &Interface,
    at: &str,
    folder: &mut Folder,
    (noun, file): (&'static str, &Place),
    record: F,
) -> Result<()>
where
    F: AsyncFn(String) -> Result<Map<String, Value>>,
{
    if folder.has(file) {
        return Ok(());
    }
    let lists = [format!("{at}/{noun}"), format!("{at}/{noun}/archive")];
    let all = ids(interface, &lists).await?;
    let (mut part, before) = folder.resume::<super::Listed>(file)?;
    let rest = missing(&all, &before);
    let mut progress = Progress::new(noun, Some(all.len() as u64));
    progress.add(before.len() as u64);
    let read = stream::iter(rest).map(|id| record(format!("{at}/{noun}/{id}")));
    let mut read = std::pin::pin!(read.buffered(CONCURRENCY));
    while let Some(record) = read.try_next().await? {
        part.line(&record)?;
        progress.add(1);
    }
    progress.end();
    folder.finish(part)
}

/// Returns a test case with its aliases, and with its plans as imports of test cases accept them.
async fn test_case(interface: &Interface, path: &str) -> Result<Map<String, Value>> {
    let mut case: Map<String, Value> = interface.get(path).await?;
    let aliases: Map<String, Value> = interface.get(&format!("{path}/aliases")).await?;
    case.extend(aliases);
    let mut plans = Vec::new();
    let listed = case.remove("TestPlanList").unwrap_or(Value::Array(Vec::new()));
    let listed: Vec<super::Listed> = serde_json::from_value(listed).context("TestPlanList")?;
    // The highest revision comes first.
    for super::Listed { id } in listed.into_iter().rev() {
        let path = format!("{path}/testplans/{id}");
        let mut plan: Map<String, Value> = interface.get(&path).await?;
        for field in OF_REPORTS {
            plan.remove(field);
        }
        let steps: Value = interface.get(&format!("{path}/automationSteps")).await?;
        plans.push(json!({"TestPlan": plan, "AutomationSteps": items(steps)}));
    }
    case.insert("TestPlans".to_owned(), plans.into());
    Ok(case)
}

/// Returns the elements of a list, which is an array or has it in a field.
fn items(list: Value) -> Value {
    match list {
        Value::Object(mut list) => list.remove("Items").unwrap_or_default(),
        list => list,
    }
}

/// Returns a test set with the identifiers of its test cases.
async fn test_set(interface: &Interface, path: &str) -> Result<Map<String, Value>> {
    let add = |identifiers: &mut Vec<Value>, mut case: Map<String, Value>| {
        identifiers.push(case.remove("Identifier").unwrap_or_default());
        Ok(())
    };
    let (mut set, identifiers) =
        interface.get_streamed(path, "TestCases", || Ok(Vec::new()), add).await?;
    set.insert("TestCases".to_owned(), identifiers.into());
    Ok(set)
}
