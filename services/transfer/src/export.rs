//! Exports a project to a folder.

mod catalog;
mod execution;
mod file;
mod stored_file;

use std::{collections::HashSet, path::PathBuf};

use anyhow::{Result, bail};
use serde::Deserialize;
use uuid::Uuid;

use crate::{
    access::Access,
    folder::Folder,
    interface::Interface,
    progress::{note, printable},
};

/// Number of requests at the same time.
const CONCURRENCY: usize = 8;

/// Export a project to a folder: records as NDJSON, results and files
///
/// The token needs the permission Read, and `AccessSecrets` to export secrets in clear; otherwise
/// asterisks replace them. If the export is interrupted, the same command continues it. An export is
/// complete when its folder has a manifest.json.
#[derive(clap::Args, Clone, Debug)]
pub struct Export {
    #[command(flatten)]
    access: Access,
    /// Name or id of the project
    #[arg(long, env = "ASSAY_PROJECT")]
    project: String,
    /// Folder to write to; created if it does not exist
    #[arg(long)]
    to: PathBuf,
    /// Leave out the files of the project, and those of results, such as screenshots
    #[arg(long)]
    no_files: bool,
}

/// A record that is only known by its id.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    id: Uuid,
}

impl Export {
    /// Exports the project.
    pub async fn run(self) -> Result<()> {
        self.export().await.map_err(|error| printable(&error))
    }

    async fn export(self) -> Result<()> {
        let interface = Interface::new(&self.access.account()?)?;
        let project = find_project(&interface, &self.project).await?;
        let at = format!("/api/projects/{project}");
        let mut folder = Folder::open(&self.to)?;
        catalog::export(&interface, &at, &mut folder).await?;
        if !self.no_files {
            stored_file::export(&interface, &at, &mut folder).await?;
        }
        execution::export(&interface, &at, &mut folder, !self.no_files).await?;
        let counts = folder.complete("assay")?;
        for (file, count) in counts {
            note(format_args!("{file}: {count}"));
        }
        Ok(())
    }
}

/// Returns the id of the project with a name or an id, active or archived.
pub(crate) async fn find_project(interface: &Interface, sought: &str) -> Result<Uuid> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Project {
        id: Uuid,
        name: String,
    }

    let mut found = Vec::new();
    for list in ["/api/projects", "/api/projects/archive"] {
        let matching = |project: Project| {
            if project.id.to_string() == sought || project.name == sought {
                found.push(project.id);
            }
            Ok(())
        };
        interface.list(list, matching).await?;
        if !found.is_empty() {
            break;
        }
    }
    match &found[..] {
        [id] => Ok(*id),
        [] => bail!("no such project: {sought}"),
        _ => bail!("several projects have the name {sought}; use the id"),
    }
}

/// Returns those of the ids that an interrupted export has not written. Some may be older than what it has: an
/// execution that has ended meanwhile, or one that was imported.
fn missing(all: &[Uuid], before: &[Listed]) -> Vec<Uuid> {
    let before: HashSet<Uuid> = before.iter().map(|listed| listed.id).collect();
    all.iter().copied().filter(|id| !before.contains(id)).collect()
}

/// Returns the ids of the records of these lists, oldest first.
async fn ids(interface: &Interface, lists: &[String]) -> Result<Vec<Uuid>> {
    let mut ids = Vec::new();
    for list in lists {
        let add = |listed: Listed| {
            ids.push(listed.id);
            Ok(())
        };
        interface.list(list, add).await?;
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}
