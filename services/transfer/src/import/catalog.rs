//! Imports the records of the catalog. Existing ones are found by name or identifier. The members of
//! test sets and the archive come last, since results change them.

use std::collections::HashMap;

use anyhow::{Context, Result};
use reqwest::{Method, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    Finished, Target, is, only,
    send::{Batch, Batches},
    text,
};
use crate::{
    export::find_project,
    folder::{ENVIRONMENTS, KNOWN_FAILURES, PROJECT, Reader, SUBJECTS, TEST_CASES, TEST_SETS},
    interface::Interface,
    progress::{Progress, note},
};

type Record = Map<String, Value>;

/// The mask of secrets.
const MASK: &str = "********";

/// The fields of records that clients write.
const OF_PROJECT: [&str; 6] = [
    "Name",
    "Description",
    "ReportTemplateId",
    "RetentionInDays",
    "DefaultBranch",
    "ServesMetrics",
];
const OF_SUBJECT: [&str; 15] = [
    "Identifier",
    "Name",
    "Uri",
    "SubjectType",
    "NeedsPublicIp",
    "SoftwareFileId",
    "SoftwareFileName",
    "SoftwareFileSize",
    "InstallationFileId",
    "InstallationFileName",
    "InstructionFileId",
    "InstructionFileName",
    "FrameworkFileId",
    "ModificationAllowed",
    "Variables",
];
const OF_ENVIRONMENT: [&str; 8] = [
    "Name",
    "ImageFileId",
    "ImageFileSize",
    "ModificationAllowed",
    "TargetGroup",
    "FileProjectId",
    "Username",
    "Password",
];
const OF_SET: [&str; 7] =
    ["Name", "Description", "Priority", "Tags", "StopOnFailure", "TimeOut", "Gate"];
const OF_PLAN: [&str; 11] = [
    "Instances",
    "MinimumDurationInMin",
    "TestType",
    "Status",
    "Description",
    "MonitoringMessage",
    "InputFileId",
    "SupportingFilesId",
    "AutomationSupportingFilesId",
    "AutomatedTestContainerId",
    "Variables",
];

/// Finds or creates the project.
pub(super) async fn open(
    interface: Interface,
    reader: &Reader,
    name: Option<&str>,
) -> Result<Target> {
    let record = reader.lines::<Record>(PROJECT)?.next().transpose()?;
    let record = record.map(|line| line.record).unwrap_or_default();
    let name = name.unwrap_or_else(|| text(&record, "Name")).to_owned();
    anyhow::ensure!(!name.is_empty(), "--project is required: the files name no project");
    let id = match find_project(&interface, &name).await {
        Ok(id) => {
            let at = format!("/api/projects/{id}");
            if is(&interface.get::<Record>(&at).await?, "Archived") {
                interface.put(&at, &json!({"Archived": false})).await?;
            }
            id
        }
        Err(error) if error.to_string().starts_with("no such project") => {
            let mut project = only(&record, &OF_PROJECT);
            project.insert("Name".to_owned(), name.into());
            create_record(&interface, "/api/projects", project).await?
        }
        Err(error) => return Err(error),
    };
    let at = format!("/api/projects/{id}");
    let (subjects, environments) = (HashMap::new(), HashMap::new());
    let (sets, cases) = (HashMap::new(), HashMap::new());
    Ok(Target { interface, at, id, subjects, environments, sets, cases })
}

/// Finds or creates all records that executions refer to.
pub(super) async fn create(
    target: &mut Target,
    reader: &Reader,
    finished: &mut Finished,
) -> Result<()> {
    let subject =
        |record: &Record| format!("{}\n{}", text(record, "Name"), text(record, "Identifier"));
    let others = HashMap::new();
    let fields = (&OF_SUBJECT[..], Some(("BaseSubjectId", &others)));
    target.subjects =
        records(target, reader, finished, ("subjects", SUBJECTS), fields, subject).await?;
    let fields = (&OF_ENVIRONMENT[..], Some(("ContainedSubject", &target.subjects)));
    let name = |record: &Record| text(record, "Name").to_owned();
    target.environments =
        records(target, reader, finished, ("environments", ENVIRONMENTS), fields, name).await?;
    let fields = (&OF_SET[..], None);
    target.sets = records(target, reader, finished, ("testsets", TEST_SETS), fields, name).await?;
    test_cases(target, reader).await
}

/// Finds or creates the records of a noun. `reference` is a field with an id, and what ids become.
/// References to records of the same noun come after those. Returns the ids by those in the export.
async fn records(
    target: &Target,
    reader: &Reader,
    finished: &mut Finished,
    (noun, file): (&'static str, &str),
    (fields, reference): (&[&str], Option<(&str, &HashMap<String, String>)>),
    key: impl Fn(&Record) -> String,
) -> Result<HashMap<String, String>> {
    let mut existing = existing(target, noun, &key).await?;
    let (mut ids, mut progress) = (HashMap::new(), Progress::new(noun, None));
    for line in reader.lines::<Record>(file)? {
        let line = line?;
        let record = line.record;
        let id = match existing.get_mut(&key(&record)).and_then(Vec::pop) {
            Some((id, is_archived)) => {
                // Executions of archived test sets cannot be opened.
                if is_archived && noun == "testsets" {
                    let path = format!("{}/{noun}/{id}", target.at);
                    target.interface.put(&path, &json!({"Archived": false})).await?;
                }
                id
            }
            None => {
                let mut input = only(&record, fields);
                unmask(&mut input);
                if let Some((field, others)) = reference {
                    let id =
                        others.get(text(&record, field)).or_else(|| ids.get(text(&record, field)));
                    input.extend(id.map(|id: &String| (field.to_owned(), id.clone().into())));
                }
                let path = format!("{}/{noun}", target.at);
                let created = create_record(&target.interface, &path, input).await;
                let id = created.with_context(|| format!("{file}, line {}", line.number))?;
                finished.add(&id)?;
                id
            }
        };
        ids.insert(text(&record, "Id").to_owned(), id);
        progress.add(1);
    }
    progress.end();
    Ok(ids)
}

/// Returns the ids of the records of a noun, the oldest last, and whether they are archived, by key.
async fn existing(
    target: &Target,
    noun: &str,
    key: impl Fn(&Record) -> String,
) -> Result<HashMap<String, Vec<(String, bool)>>> {
    let mut existing = HashMap::<String, Vec<(String, bool)>>::new();
    for (list, is_archived) in [(noun.to_owned(), false), (format!("{noun}/archive"), true)] {
        let add = |record: Record| {
            let id = text(&record, "Id").to_owned();
            existing.entry(key(&record)).or_default().push((id, is_archived));
            Ok(())
        };
        target.interface.list(&format!("{}/{list}", target.at), add).await?;
    }
    for ids in existing.values_mut() {
        ids.sort_unstable_by(|one, other| other.cmp(one));
    }
    Ok(existing)
}

/// Clears masked secrets, which only the installation that exported them knows.
fn unmask(record: &mut Record) {
    if text(record, "Password") == MASK {
        record.remove("Password");
    }
    let variables = record.get_mut("Variables").and_then(Value::as_array_mut);
    for variable in variables.into_iter().flatten() {
        if variable["IsSecured"] == true && variable["Content"] == MASK {
            variable["Content"] = "".into();
        }
    }
}

async fn create_record(interface: &Interface, path: &str, record: Record) -> Result<String> {
    let created = interface.create(path, &record.into()).await?;
    Ok(text(&created, "Id").to_owned())
}

/// The outcome of a row.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Imported {
    id: String,
    identifier: String,
}

/// Imports the test cases with their plans and aliases, in batches. An archived one whose identifier
/// belongs to an active one now is left out, as is one that has been imported before.
async fn test_cases(target: &mut Target, reader: &Reader) -> Result<()> {
    let mut archived = std::collections::HashSet::new();
    target
        .interface
        .list(&format!("{}/testcases/archive", target.at), |case: Record| {
            archived.insert(text(&case, "Identifier").to_owned());
            Ok(())
        })
        .await?;
    let mut active = std::collections::HashSet::new();
    for line in reader.lines::<Record>(TEST_CASES)? {
        let case = line?.record;
        if !is(&case, "Archived") {
            active.insert(text(&case, "Identifier").to_owned());
        }
    }
    let (mut batches, mut progress) = (Batches::default(), Progress::new("testcases", None));
    let mut left_out = 0;
    for line in reader.lines::<Record>(TEST_CASES)? {
        let line = line?;
        let identifier = text(&line.record, "Identifier");
        if is(&line.record, "Archived") && active.contains(identifier) {
            left_out += 1;
            continue;
        }
        if is(&line.record, "Archived") && archived.contains(identifier) {
            continue;
        }
        let row = serde_json::to_vec(&row(&line.record))?;
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

/// Returns a test case as a row of an import.
fn row(case: &Record) -> Record {
    let mut row = only(case, &["Identifier", "Name", "Description"]);
    let plans = case.get("TestPlans").and_then(Value::as_array).into_iter().flatten();
    let plans: Vec<Value> = plans
        .map(|plan| {
            let mut fields = plan["TestPlan"].as_object().map(|plan| only(plan, &OF_PLAN));
            fields.iter_mut().for_each(unmask);
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
    let imported: Vec<Imported> = sent.json().await?;
    progress.add(imported.len() as u64);
    target.cases.extend(imported.into_iter().map(|case| (case.identifier, case.id)));
    Ok(())
}

async fn aliases(target: &Target, reader: &Reader) -> Result<()> {
    for line in reader.lines::<Record>(TEST_CASES)? {
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

/// Completes the records after their executions. Test sets that this import has created get the members
/// that they had, and others keep theirs.
pub(super) async fn complete(target: &Target, reader: &Reader, finished: &Finished) -> Result<()> {
    for line in reader.lines::<Record>(TEST_SETS)? {
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
    archive(target, reader, ("subjects", SUBJECTS), &target.subjects, "Id").await?;
    archive(target, reader, ("environments", ENVIRONMENTS), &target.environments, "Id").await?;
    archive(target, reader, ("testcases", TEST_CASES), &target.cases, "Identifier").await?;
    known_failures(target, reader).await?;
    let project = reader.lines::<Record>(PROJECT)?.next().transpose()?;
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
    (noun, file): (&str, &str),
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
    for line in reader.lines::<Record>(KNOWN_FAILURES)? {
        known.push(line?.record);
    }
    let mut cases: HashMap<String, Option<&String>> =
        known.iter().map(|known| (text(known, "TestCaseId").to_owned(), None)).collect();
    for line in reader.lines::<Record>(TEST_CASES)? {
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
        let created = target.interface.create(&path, &input.into()).await;
        left_out += usize::from(created.is_err());
    }
    if left_out > 0 {
        note(format_args!("{left_out} known failures have ended or exist already"));
    }
    Ok(())
}
