//! Completes the records of the catalog after the results, which change them: the members of test
//! sets, the archive and known failures.

use std::collections::HashMap;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{Finished, Target, is, only, text};
use crate::{
    folder::{
        ENVIRONMENTS, KNOWN_FAILURES, PROJECT, Place, Reader, SUBJECTS, TEST_CASES, TEST_SETS,
    },
    interface::has_code,
    progress::note,
};

type Record = Map<String, Value>;

/// The codes with which known failures are rejected that exist already, have ended, or are of a test case that
/// was left out.
const LEFT_OUT: [&str; 2] = ["already_exists", "invalid"];

/// Completes the records after their executions. Test sets that this import has created get the members
/// that they had, and others keep theirs.
pub(super) async fn complete(target: &Target, reader: &Reader, finished: &Finished) -> Result<()> {
    for line in reader.lines::<Record>(&TEST_SETS)? {
        let set = line?.record;
        let Some(id) = target.sets.get(text(&set, "Id")) else { continue };
        let mut change = selection(target, &set);
        if finished.has(id) {
            let members = set.get("TestCases").and_then(Value::as_array).into_iter().flatten();
            let members = members.filter_map(|one| target.cases.get(one.as_str()?));
            let members: Vec<_> = members.map(|id| json!({"Id": id})).collect();
            change.insert("TestCases".to_owned(), members.into());
        } else {
            include(target, id, &set).await?;
        }
        if is(&set, "Archived") {
            change.insert("Archived".to_owned(), true.into());
        }
        if !change.is_empty() {
            target.interface.put(&format!("{}/testsets/{id}", target.at), &change.into()).await?;
        }
    }
    archive(target, reader, ("subjects", &SUBJECTS), &target.subjects, "Id").await?;
    archive(target, reader, ("environments", &ENVIRONMENTS), &target.environments, "Id").await?;
    archive(target, reader, ("testcases", &TEST_CASES), &target.cases, "Identifier").await?;
    known_failures(target, reader).await?;
    let project = reader.lines::<Record>(&PROJECT)?.next().transpose()?;
    if project.is_some_and(|line| is(&line.record, "Archived")) {
        target.interface.put(&target.at, &json!({"Archived": true})).await?;
    }
    Ok(())
}

/// Returns the subject and the environment for the next execution of a set.
fn selection(target: &Target, set: &Record) -> Record {
    let ids = [
        ("SelectedSubjectId", target.subjects.get(text(set, "SelectedSubjectId"))),
        ("SelectedEnvironmentId", target.environments.get(text(set, "SelectedEnvironmentId"))),
    ];
    let ids =
        ids.into_iter().filter_map(|(field, id)| Some((field.to_owned(), id?.clone().into())));
    ids.collect()
}

/// Adds the members of a set that it does not have yet.
async fn include(target: &Target, id: &str, set: &Record) -> Result<()> {
    let members = set.get("TestCases").and_then(Value::as_array).into_iter().flatten();
    let members: Vec<_> = members.filter_map(|one| target.cases.get(one.as_str()?)).collect();
    let path = format!("{}/testsets/{id}/testcases", target.at);
    for part in members.chunks(5000) {
        let part: Vec<_> = part.iter().map(|id| json!({"Id": id})).collect();
        target.interface.put(&path, &part.into()).await?;
    }
    Ok(())
}

/// Archives the records of a noun that are archived in the export.
async fn archive(
    target: &Target,
    reader: &Reader,
    (noun, file): (&str, &Place),
    ids: &HashMap<String, String>,
    key: &str,
) -> Result<()> {
    for line in reader.lines::<Record>(file)? {
        let record = line?.record;
        let Some(id) = ids.get(text(&record, key)).filter(|_| is(&record, "Archived")) else {
            continue;
        };
        let path = format!("{}/{noun}/{id}", target.at);
        target.interface.put(&path, &json!({"Archived": true})).await?;
    }
    Ok(())
}

/// Makes failures known that are still muted.
async fn known_failures(target: &Target, reader: &Reader) -> Result<()> {
    let mut known = Vec::new();
    for line in reader.lines::<Record>(&KNOWN_FAILURES)? {
        known.push(line?.record);
    }
    let mut cases: HashMap<String, Option<&String>> =
        known.iter().map(|known| (text(known, "TestCaseId").to_owned(), None)).collect();
    for line in reader.lines::<Record>(&TEST_CASES)? {
        let case = line?.record;
        if let Some(id) = cases.get_mut(text(&case, "Id")) {
            *id = target.cases.get(text(&case, "Identifier"));
        }
    }
    let mut left_out = 0;
    for known in known {
        let mut input = only(&known, &["Fingerprint", "Ticket", "Comment", "MutedUntil"]);
        match (text(&known, "TestCaseId"), cases.get(text(&known, "TestCaseId"))) {
            ("", _) => _ = input.insert("EveryCase".to_owned(), true.into()),
            (_, Some(Some(id))) => _ = input.insert("TestCaseId".to_owned(), (*id).clone().into()),
            _ => {}
        }
        let path = format!("{}/knownfailures", target.at);
        match target.interface.create(&path, &input.into()).await {
            Ok(_) => {}
            Err(error) if LEFT_OUT.iter().any(|code| has_code(&error, code)) => left_out += 1,
            Err(error) => return Err(error.context(KNOWN_FAILURES.to_string())),
        }
    }
    if left_out > 0 {
        note(format_args!("{left_out} known failures have ended or exist already"));
    }
    Ok(())
}
