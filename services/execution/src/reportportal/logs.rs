//! Forms with logs and their files.

use std::collections::{HashMap, VecDeque};

use assay_formats::lenient;
use assay_proto::{Fault, execution::LaunchEntryKind};
use assay_records::elements;
use assay_rpc::body::{Body, File, Memory};
use serde_json::{Value, json};
use uuid::Uuid;

use super::body::{self, Entry, Kind, Named};
use crate::result::attachments::{name_of, safe_content_type};

/// Memory that a log takes beside its text, in bytes.
const ENTRY: usize = 300;

/// Reads a form: a file without a name with the logs, a JSON array, and the files that they name.
/// Returns the requests, and the ids of the logs.
pub(super) fn read(body: Body, memory: &mut Memory) -> Result<(Vec<Entry>, Vec<Uuid>), Fault> {
    let (files, logs): (Vec<File>, Vec<File>) =
        body.files.into_iter().partition(|file| file.is_attachment);
    let mut files = by_name(files);
    let (mut entries, mut ids) = (Vec::new(), Vec::new());
    for part in logs {
        let text = lenient(part).map_err(Fault::internal)?;
        let read = elements::read(text, false, |log, weight| {
            memory.lend(weight)?;
            let mut log: Value = elements::parse(log, ids.len())?;
            let file = log["file"]["name"].as_str().and_then(|name| {
                // A name may be that of several files, one for each log that has it.
                files.get_mut(name).and_then(VecDeque::pop_front)
            });
            let stored = file.map(|file| stored(&mut log, &file));
            memory.grow(ENTRY)?;
            let (entry, id) = body::entry(LaunchEntryKind::Log, None, log.to_string().into())?;
            ids.push(id);
            entries.extend(stored.map(|(named, contents)| Entry {
                launch: entry.launch,
                kind: Kind::File,
                item: None,
                parent: None,
                body: contents.into(),
                file: Some(named),
            }));
            entries.push(entry);
            Ok(())
        });
        read.map_err(|fault| match fault {
            Fault::Malformed(reason) => Fault::Malformed(format!("json_request_part: {reason}")),
            fault => fault,
        })?;
    }
    if entries.is_empty() {
        return Err(Fault::Malformed("json_request_part: must be an array of logs".to_owned()));
    }
    Ok((entries, ids))
}

fn by_name(files: Vec<File>) -> HashMap<String, VecDeque<File>> {
    let mut named = HashMap::<String, VecDeque<File>>::new();
    for file in files {
        named.entry(file.name.clone()).or_default().push_back(file);
    }
    named
}

/// Names the artifact that a file becomes, also in its log. Returns the name and the contents.
fn stored(log: &mut Value, file: &File) -> (Named, Vec<u8>) {
    let contents = file.parts().collect::<Vec<_>>().concat();
    let name = name_of(&file.name, &contents);
    let content_type = safe_content_type(&file.content_type).to_owned();
    log["file"]["artifact"] = json!(name);
    log["file"]["contentType"] = json!(content_type);
    (Named { name, content_type }, contents)
}
