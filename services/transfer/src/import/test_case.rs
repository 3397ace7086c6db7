//! Imports test cases with their plans and aliases.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use reqwest::{Method, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Finished, Target,
    fields::{OF_PLAN, move_files, unmask},
    is, only,
    send::{Batch, Batches},
    text,
};
use crate::{
    folder::{Reader, TEST_CASES},
    progress::{Progress, note},
};

type Record = Map<String, Value>;

/// Maximum size of the answer to an import, in bytes.
const LARGEST: u64 = 32 << 20;

/// The test cases of the target: their ids, and whether they are archived, by identifier.
type Existing = HashMap<String, Vec<(String, bool)>>;

/// The outcome of a row.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Imported {
    id: Uuid,
    identifier: String,
}

/// Imports the test cases with their plans and aliases, in batches. An archived one whose identifier
/// belongs to an active one now is left out, as is one that has been imported before: users may have changed it.
pub(super) async fn import(
    target: &mut Target,
    reader: &Reader,
    finished: &mut Finished,
    existing: &Existing,
) -> Result<()> {
    let mut active = HashSet::new();
    for line in reader.lines::<Record>(&TEST_CASES)? {
        let case = line?.record;
        if !is(&case, "Archived") {
            active.insert(text(&case, "Identifier").to_owned());
        }
    }
    let (mut batches, mut progress) = (Batches::default(), Progress::new("testcases", None));
    let mut left_out = 0;
    for line in reader.lines::<Record>(&TEST_CASES)? {
        let line = line?;
        let identifier = text(&line.record, "Identifier");
        if is(&line.record, "Archived") && active.contains(identifier) {
            left_out += 1;
            continue;
        }
        let known: &[(String, bool)] = existing.get(identifier).map_or(&[], Vec::as_slice);
        if is_imported(target, finished, &line.record, known) {
            progress.add(1);
            continue;
        }
        let row = serde_json::to_vec(&row(&line.record, &target.files))?;
        if let Some(batch) = batches.add(line.number, &row) {
            send_cases(target, finished, batch, &mut progress).await?;
        }
    }
    if let Some(batch) = batches.take() {
        send_cases(target, finished, batch, &mut progress).await?;
    }
    progress.end();
    if left_out > 0 {
        note(format_args!(
            "{left_out} archived test cases have the identifier of another one and are left out"
        ));
    }
    aliases(target, reader, finished).await
}

/// Returns whether a test case has been imported before, and is among these of the target. Notes its id if it is
/// active.
fn is_imported(
    target: &mut Target,
    finished: &Finished,
    case: &Record,
    known: &[(String, bool)],
) -> bool {
    if let Some((id, is_archived)) = known.iter().find(|(id, _)| finished.has(id)) {
        if !is_archived {
            target.cases.insert(text(case, "Identifier").to_owned(), id.clone());
        }
        return true;
    }
    is(case, "Archived") && known.iter().any(|(_, is_archived)| *is_archived)
}

/// Returns a test case as a row of an import, with the new ids of files.
fn row(case: &Record, files: &HashMap<String, String>) -> Record {
    let mut row = only(case, &["Identifier", "Name", "Description"]);
    let plans = case.get("TestPlans").and_then(Value::as_array).into_iter().flatten();
    let plans: Vec<Value> = plans
        .map(|plan| {
            let mut fields = plan["TestPlan"].as_object().map(|plan| only(plan, &OF_PLAN));
            if let Some(fields) = &mut fields {
                unmask(fields);
                move_files(fields, files);
            }
            json!({"TestPlan": fields.unwrap_or_default(), "AutomationSteps": plan["AutomationSteps"]})
        })
        .collect();
    if !plans.is_empty() {
        row.insert("TestPlans".to_owned(), plans.into());
    }
    row
}

async fn send_cases(
    target: &mut Target,
    finished: &mut Finished,
    batch: Batch,
    progress: &mut Progress,
) -> Result<()> {
    let path = format!("{}/testcases/import", target.at);
    let (first, last) = batch.lines;
    let sent = target.interface.send(Method::POST, &path, |request| {
        request.header(CONTENT_TYPE, "application/x-ndjson").body(batch.body.clone())
    });
    let sent = sent.await.with_context(|| format!("{TEST_CASES}, lines {first} to {last}"))?;
    let imported: Vec<Imported> = sent.json(LARGEST).await?;
    progress.add(imported.len() as u64);
    for case in imported {
        let id = case.id.to_string();
        finished.add(&id)?;
        target.cases.insert(case.identifier, id);
    }
    Ok(())
}

/// Replaces the aliases of each test case once.
async fn aliases(target: &Target, reader: &Reader, finished: &mut Finished) -> Result<()> {
    for line in reader.lines::<Record>(&TEST_CASES)? {
        let case = line?.record;
        let has = case.get("Aliases").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        let Some(id) = target.cases.get(text(&case, "Identifier")).filter(|_| has) else {
            continue;
        };
        let key = format!("aliases {id}");
        if !finished.has(&key) {
            let path = format!("{}/testcases/{id}/aliases", target.at);
            target.interface.put(&path, &json!({"Aliases": case["Aliases"]})).await?;
            finished.add(&key)?;
        }
    }
    Ok(())
}
