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

/// Completes the records after their executions. A repeated import leaves what users have changed since then.
pub(super) async fn complete(
    target: &Target,
    reader: &Reader,
    finished: &mut Finished,
) -> Result<()> {
    for line in reader.lines::<Record>(&TEST_SETS)? {
        let set = line?.record;
        if let Some(id) = target.sets.get(text(&set, "Id")) {
            test_set(target, finished, id, &set).await?;
        }
    }
    for (noun, file, ids, key) in [
        ("subjects", &SUBJECTS, &target.subjects, "Id"),
        ("environments", &ENVIRONMENTS, &target.environments, "Id"),
        ("testcases", &TEST_CASES, &target.cases, "Identifier"),
    ] {
        archive(target, reader, finished, (noun, file), (ids, key)).await?;
    }
    known_failures(target, reader).await?;
    let project = reader.lines::<Record>(&PROJECT)?.next().transpose()?;
    let is_archived = project.is_some_and(|line| is(&line.record, "Archived"));
    if is_archived && finished.is_to_archive(&target.id) {
        target.interface.put(&target.at, &json!({"Archived": true})).await?;
        finished.archive(&target.id)?;
    }
    Ok(())
}

/// Completes a test set. The first time, one that the import has created gets the members that it had; if the
/// export does not know them, it keeps those that its results have added. Others keep theirs.
async fn test_set(target: &Target, finished: &mut Finished, id: &str, set: &Record) -> Result<()> {
    let completed = format!("completed {id}");
    let is_first = !finished.has(&completed);
    let mut change = if is_first { selection(target, set) } else { Record::new() };
    let members = members(target, set);
    if is_first && finished.has(id) && set.contains_key("TestCases") {
        change.insert("TestCases".to_owned(), members.into());
    } else {
        include(target, id, &members).await?;
    }
    let is_archived = is(set, "Archived") && finished.is_to_archive(id) || finished.is_reopened(id);
    if is_archived {
        change.insert("Archived".to_owned(), true.into());
    }
    if !change.is_empty() {
        target.interface.put(&format!("{}/testsets/{id}", target.at), &change.into()).await?;
    }
    if is_archived {
        finished.archive(id)?;
    }
    if is_first {
        finished.add(&completed)?;
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

/// Returns the members of a set in the export, as references to test cases of the target.
fn members(target: &Target, set: &Record) -> Vec<Value> {
    let members = set.get("TestCases").and_then(Value::as_array).into_iter().flatten();
    let members = members.filter_map(|one| target.cases.get(one.as_str()?));
    members.map(|id| json!({"Id": id})).collect()
}

/// Adds the members of a set that it does not have yet.
async fn include(target: &Target, id: &str, members: &[Value]) -> Result<()> {
    let path = format!("{}/testsets/{id}/testcases", target.at);
    for part in members.chunks(5000) {
        target.interface.put(&path, &part.to_vec().into()).await?;
    }
    Ok(())
}

/// Archives the records of a noun that are archived in the export.
async fn archive(
    target: &Target,
    reader: &Reader,
    finished: &mut Finished,
    (noun, file): (&str, &Place),
    (ids, key): (&HashMap<String, String>, &str),
) -> Result<()> {
    for line in reader.lines::<Record>(file)? {
        let record = line?.record;
        let Some(id) = ids.get(text(&record, key)).filter(|_| is(&record, "Archived")) else {
            continue;
        };
        if finished.is_to_archive(id) {
            let path = format!("{}/{noun}/{id}", target.at);
            target.interface.put(&path, &json!({"Archived": true})).await?;
            finished.archive(id)?;
        }
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
