//! Imports test cases with their plans and aliases.

use std::collections::{HashMap, HashSet};

use anyhow::{Context, Result};
use reqwest::{Method, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{
    Target,
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

/// The outcome of a row.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Imported {
    id: Uuid,
    identifier: String,
}

/// Imports the test cases with their plans and aliases, in batches. An archived one whose identifier
/// belongs to an active one now is left out, as is one that has been imported before.
pub(super) async fn import(target: &mut Target, reader: &Reader) -> Result<()> {
    let mut archived = HashSet::new();
    target
        .interface
        .list(&format!("{}/testcases/archive", target.at), |case: Record| {
            archived.insert(text(&case, "Identifier").to_owned());
            Ok(())
        })
        .await?;
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
        if is(&line.record, "Archived") && archived.contains(identifier) {
            continue;
        }
        let row = serde_json::to_vec(&row(&line.record, &target.files))?;
        if let Some(batch) = batches.add(line.number, &row) {
            send_cases(target, batch, &mut progress).await?;
        }
    }
    if let Some(batch) = batches.take() {
        send_cases(target, batch, &mut progress).await?;
    }
    progress.end();
    if left_out > 0 {
        note(format_args!(
            "{left_out} archived test cases have the identifier of another one and are left out"
        ));
    }
    aliases(target, reader).await
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

async fn send_cases(target: &mut Target, batch: Batch, progress: &mut Progress) -> Result<()> {
    let path = format!("{}/testcases/import", target.at);
    let (first, last) = batch.lines;
    let sent = target.interface.send(Method::POST, &path, |request| {
        request.header(CONTENT_TYPE, "application/x-ndjson").body(batch.body.clone())
    });
    let sent = sent.await.with_context(|| format!("{TEST_CASES}, lines {first} to {last}"))?;
    let imported: Vec<Imported> = sent.json(LARGEST).await?;
    progress.add(imported.len() as u64);
    target.cases.extend(imported.into_iter().map(|case| (case.identifier, case.id.to_string())));
    Ok(())
}

async fn aliases(target: &Target, reader: &Reader) -> Result<()> {
    for line in reader.lines::<Record>(&TEST_CASES)? {
        let case = line?.record;
        let has = case.get("Aliases").and_then(Value::as_array).is_some_and(|all| !all.is_empty());
        let Some(id) = target.cases.get(text(&case, "Identifier")).filter(|_| has) else {
            continue;
        };
        let path = format!("{}/testcases/{id}/aliases", target.at);
        target.interface.put(&path, &json!({"Aliases": case["Aliases"]})).await?;
    }
    Ok(())
}
