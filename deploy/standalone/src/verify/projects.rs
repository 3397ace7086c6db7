//! Projects, test cases and test sets of the catalog, compared with what the execution service has stored of them.

use std::{collections::HashMap, fmt::Display};

use anyhow::Result;
use assay_catalog::Wrong;
use assay_database::begin;
use assay_events::list_live;

use super::{DELETE_AGAIN, Databases, SEARCHED};

/// Reports the differences, and repairs those whose source is known if asked for. Returns their number.
pub(super) async fn compare(
    databases: &Databases,
    wrong: Wrong,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let mut differences = compare_projects(databases, wrong, &mut report).await?;
    differences += compare_deletions(databases, wrong, &mut report).await?;
    if wrong == Wrong::Kept {
        differences += find_restored(databases, &mut report).await?;
        differences += find_lost(databases, &mut report).await?;
    }
    Ok(differences)
}

/// Compares how long the results of projects are kept, and reports projects that only the catalog has.
async fn compare_projects(
    Databases { catalog, execution, .. }: &Databases,
    wrong: Wrong,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let (mut differences, mut after) = (0, None);
    let repairs = wrong == Wrong::Repaired;
    loop {
        let mut tx = begin(execution).await?;
        if repairs {
            assay_execution::lock_retentions(&mut tx).await?;
        }
        let known = assay_catalog::retentions(catalog, after).await?;
        let Some(last) = known.last() else { return Ok(differences) };
        after = Some((last.customer, last.project));
        if wrong == Wrong::Kept {
            for project in assay_execution::deleted_projects(execution, &known).await? {
                report(&format!(
                    "project {project}: the execution service has deleted it, but the catalog has it \
                     again: {DELETE_AGAIN}"
                ));
                differences += 1;
            }
        }
        let differing = assay_execution::compare_retentions(&mut tx, &known, repairs).await?;
        tx.commit().await?;
        for difference in differing {
            report(&difference);
            differences += 1;
        }
    }
}

/// Compares which test cases and test sets the catalog has deleted.
async fn compare_deletions(
    Databases { catalog, execution, .. }: &Databases,
    wrong: Wrong,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let (mut differences, mut after) = (0, None);
    loop {
        let known = assay_catalog::deletions(catalog, after).await?;
        let Some(last) = known.last() else { return Ok(differences) };
        after = Some((last.customer_id, last.project_id, last.id));
        let repairs = wrong == Wrong::Repaired;
        for difference in assay_execution::compare_deletions(execution, &known, repairs).await? {
            report(&difference);
            differences += 1;
        }
    }
}

/// Reports test cases and test sets that were deleted, but that the catalog has again.
async fn find_restored(
    Databases { catalog, execution, .. }: &Databases,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let (mut differences, mut after) = (0, None);
    loop {
        let deleted = assay_execution::deleted_records(execution, after).await?;
        let Some(last) = deleted.last() else { return Ok(differences) };
        after = Some(*last);
        for (noun, id) in assay_catalog::find_restored(catalog, &deleted).await? {
            report(&format!(
                "{noun} {id}: was deleted, but the catalog has it again: {DELETE_AGAIN}"
            ));
            differences += 1;
        }
    }
}

/// Reports projects of which the execution service has records, but that the catalog lacks or has deleted.
async fn find_lost(
    Databases { catalog, execution, .. }: &Databases,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let (mut differences, mut after) = (0, None);
    loop {
        let live = list_live(execution, assay_execution::LIVE_PROJECTS, after).await?;
        let Some(last) = live.last() else { return Ok(differences) };
        after = Some(*last);
        let known = assay_catalog::find_projects(catalog, &live).await?;
        let known: HashMap<_, _> = known
            .into_iter()
            .map(|(customer, project, is_deleted)| ((customer, project), is_deleted))
            .collect();
        for key @ (_, project) in live {
            let difference = match known.get(&key) {
                Some(false) => continue,
                Some(true) => format!(
                    "project {project}: the catalog has deleted it, but the execution service has \
                     not: {SEARCHED}"
                ),
                None => format!(
                    "project {project}: has executions or settings, but the catalog lacks it: \
                     restore a later backup of the catalog"
                ),
            };
            report(&difference);
            differences += 1;
        }
    }
}
