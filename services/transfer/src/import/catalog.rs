//! Imports the records that executions refer to. Existing ones are found by name or identifier.

use std::collections::HashMap;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::{
    Finished, Target,
    fields::{OF_ENVIRONMENT, OF_PROJECT, OF_SET, OF_SUBJECT, move_files, unmask},
    id, is, only, test_case, text,
};
use crate::{
    export::find_project,
    folder::{ENVIRONMENTS, PROJECT, Place, Reader, SUBJECTS, TEST_SETS},
    interface::Interface,
    progress::Progress,
};

type Record = Map<String, Value>;

/// Finds or creates the project.
pub(super) async fn open(
    interface: Interface,
    reader: &Reader,
    name: Option<&str>,
) -> Result<Target> {
    let record = reader.lines::<Record>(&PROJECT)?.next().transpose()?;
    let record = record.map(|line| line.record).unwrap_or_default();
    let name = name.unwrap_or_else(|| text(&record, "Name")).to_owned();
    anyhow::ensure!(!name.is_empty(), "--project is required: the files name no project");
    let id = match find_project(&interface, &name).await {
        Ok(id) => id.to_string(),
        Err(error) if error.to_string().starts_with("no such project") => {
            let mut project = only(&record, &OF_PROJECT);
            project.insert("Name".to_owned(), name.into());
            create_record(&interface, "/api/projects", project).await?
        }
        Err(error) => return Err(error),
    };
    let at = format!("/api/projects/{id}");
    let (files, subjects, environments) = (HashMap::new(), HashMap::new(), HashMap::new());
    let (sets, cases) = (HashMap::new(), HashMap::new());
    Ok(Target { interface, at, id, files, subjects, environments, sets, cases })
}

/// Takes the project out of the archive, where nothing can be imported to it.
pub(super) async fn reopen(target: &Target, finished: &mut Finished) -> Result<()> {
    if is(&target.interface.get::<Record>(&target.at).await?, "Archived") {
        finished.reopen(&target.id)?;
        target.interface.put(&target.at, &json!({"Archived": false})).await?;
    }
    Ok(())
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
        records(target, reader, finished, ("subjects", &SUBJECTS), fields, subject).await?;
    let fields = (&OF_ENVIRONMENT[..], Some(("ContainedSubject", &target.subjects)));
    let name = |record: &Record| text(record, "Name").to_owned();
    target.environments =
        records(target, reader, finished, ("environments", &ENVIRONMENTS), fields, name).await?;
    let fields = (&OF_SET[..], None);
    target.sets = records(target, reader, finished, ("testsets", &TEST_SETS), fields, name).await?;
    let lists = [("testcases", false), ("testcases/archive", true)];
    let identifier = |record: &Record| text(record, "Identifier").to_owned();
    let existing = existing(target, &lists, identifier).await?;
    test_case::import(target, reader, finished, &existing).await
}

/// A field with an id, and what ids become.
type Reference<'a> = (&'a str, &'a HashMap<String, String>);

/// Finds or creates the records of a noun. `reference` is a field with an id, and what ids become.
/// References to records of the same noun come after those. Returns the ids by those in the export.
async fn records(
    target: &Target,
    reader: &Reader,
    finished: &mut Finished,
    (noun, file): (&'static str, &Place),
    (fields, reference): (&[&str], Option<Reference<'_>>),
    key: impl Fn(&Record) -> String,
) -> Result<HashMap<String, String>> {
    let archive = format!("{noun}/archive");
    let mut existing = existing(target, &[(noun, false), (archive.as_str(), true)], &key).await?;
    let (mut ids, mut progress) = (HashMap::new(), Progress::new(noun, None));
    for line in reader.lines::<Record>(file)? {
        let line = line?;
        let record = line.record;
        let id = if let Some((id, is_archived)) = existing.get_mut(&key(&record)).and_then(Vec::pop)
        {
            // Executions of archived test sets cannot be opened.
            if is_archived && noun == "testsets" {
                finished.reopen(&id)?;
                let path = format!("{}/{noun}/{id}", target.at);
                target.interface.put(&path, &json!({"Archived": false})).await?;
            }
            id
        } else {
            let mut input = only(&record, fields);
            unmask(&mut input);
            move_files(&mut input, &target.files);
            if let Some((field, others)) = reference {
                let id = others.get(text(&record, field)).or_else(|| ids.get(text(&record, field)));
                input.extend(id.map(|id: &String| (field.to_owned(), id.clone().into())));
            }
            let path = format!("{}/{noun}", target.at);
            let created = create_record(&target.interface, &path, input).await;
            let id = created.with_context(|| format!("{file}, line {}", line.number))?;
            finished.add(&id)?;
            id
        };
        ids.insert(text(&record, "Id").to_owned(), id);
        progress.add(1);
    }
    progress.end();
    Ok(ids)
}

/// Returns the ids of the records of these lists, the oldest last, and whether they are archived, by key.
pub(super) async fn existing(
    target: &Target,
    lists: &[(&str, bool)],
    key: impl Fn(&Record) -> String,
) -> Result<HashMap<String, Vec<(String, bool)>>> {
    let mut existing = HashMap::<String, Vec<(String, bool)>>::new();
    for &(list, is_archived) in lists {
        let add = |record: Record| {
            let id = id(&record)?;
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

async fn create_record(interface: &Interface, path: &str, record: Record) -> Result<String> {
    let created = interface.create(path, &record.into()).await?;
    id(&created)
}
