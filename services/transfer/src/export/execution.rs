//! Exports executions: their results, reviews and files.

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{file, ids, missing};
use crate::{
    folder::{EXECUTIONS, Folder, Name, Part, Place},
    interface::Interface,
    progress::{Progress, note},
};

/// The fields of a test report that its results do not have.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    test_case_identifier: String,
    status: String,
    comment: String,
    ticket: String,
}

impl Report {
    /// Returns whether a user has reviewed the report, or an engine has commented it.
    fn is_reviewed(&self) -> bool {
        let is_judged = matches!(self.status.as_str(), "Accepted" | "Rejected" | "Investigation");
        is_judged || !self.comment.is_empty() || !self.ticket.is_empty()
    }
}

/// Exports the executions of a project that have ended, oldest first, as far as they had ended when the export
/// began.
pub(super) async fn export(
    interface: &Interface,
    at: &str,
    folder: &mut Folder,
    with_files: bool,
) -> Result<()> {
    if folder.has(&EXECUTIONS) {
        return Ok(());
    }
    let lists = [format!("{at}/executions"), format!("{at}/executions/archive")];
    let all = ids(interface, &lists).await?;
    let (mut part, before) = folder.resume::<super::Listed>(&EXECUTIONS)?;
    let mut progress = Progress::new("executions", Some(all.len() as u64));
    progress.add(before.len() as u64);
    let mut running = 0;
    for id in missing(&all, &before) {
        match execution(interface, at, folder, id, with_files).await? {
            Some(header) => {
                part.line(&header)?;
                part.flush()?;
            }
            None => running += 1,
        }
        progress.add(1);
    }
    progress.end();
    if running > 0 {
        note(format_args!("{running} executions have not ended and are left out"));
    }
    folder.finish(part)
}

/// Exports an execution, and returns its fields. `None` if it has not ended.
async fn execution(
    interface: &Interface,
    at: &str,
    folder: &mut Folder,
    id: Uuid,
    with_files: bool,
) -> Result<Option<Map<String, Value>>> {
    let path = format!("{at}/executions/{id}");
    let name = Name::from(id);
    let reviews = Place::reviews(&name);
    let begin = || folder.begin(&reviews);
    let (header, part) = interface.get_streamed(&path, "TestReports", begin, add_review).await?;
    if header.get("CompletionDateTime").is_none_or(Value::is_null) {
        return Ok(None);
    }
    folder.finish(part)?;
    let names = if with_files {
        file::export(interface, &path, folder, &name).await?
    } else {
        file::Names::default()
    };
    let results = Place::results(&name);
    if !folder.has(&results) {
        let part = file::results(interface, &path, folder, &results, &names).await?;
        folder.finish(part)?;
    }
    Ok(Some(header))
}

fn add_review(part: &mut Part, report: Report) -> Result<()> {
    if !report.is_reviewed() {
        return Ok(());
    }
    let Report { test_case_identifier, status, comment, ticket } = report;
    part.line(&json!({
        "TestCaseIdentifier": test_case_identifier,
        "Status": status, "Comment": comment, "Ticket": ticket,
    }))
}
