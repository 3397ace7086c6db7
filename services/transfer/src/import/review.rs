//! Imports the reviews of test reports.

use std::collections::{BTreeMap, HashMap};

use anyhow::Result;
use serde::Deserialize;
use serde_json::json;

use super::Target;
use crate::{
    folder::{Name, Place, Reader},
    interface::Interface,
};

/// Maximum number of test reports in a request.
const REPORTS: usize = 10_000;

#[derive(Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Review {
    test_case_identifier: String,
    status: String,
    #[serde(default)]
    comment: String,
    #[serde(default)]
    ticket: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    id: String,
    test_case_identifier: String,
}

/// The test reports that are reviewed: their identifiers, and their ids as far as they were read.
type Ids = HashMap<String, Option<String>>;

/// Reviews the test reports of an execution as they were. Equal reviews are one request.
pub(super) async fn import(target: &Target, reader: &Reader, run: &Name, at: &str) -> Result<()> {
    let mut groups = BTreeMap::<(String, String, String), Vec<String>>::new();
    for line in reader.lines::<Review>(&Place::reviews(run))? {
        let Review { test_case_identifier, status, comment, ticket } = line?.record;
        // The others follow from the results.
        if matches!(status.as_str(), "Accepted" | "Rejected" | "Investigation" | "InReview") {
            groups.entry((status, comment, ticket)).or_default().push(test_case_identifier);
        }
    }
    if groups.is_empty() {
        return Ok(());
    }
    let reviewed = groups.values().flatten().map(|identifier| (identifier.clone(), None));
    let ids = ids(&target.interface, at, reviewed.collect()).await?;
    for ((status, comment, ticket), identifiers) in groups {
        let found = identifiers.iter().filter_map(|one| ids.get(one).cloned().flatten());
        for reports in found.collect::<Vec<_>>().chunks(REPORTS) {
            let mut review = json!({"Reports": reports, "Status": status});
            for (field, text) in [("Comment", &comment), ("Ticket", &ticket)] {
                if !text.is_empty() {
                    review[field] = text.clone().into();
                }
            }
            target.interface.put(&format!("{at}/reviews"), &review).await?;
        }
    }
    Ok(())
}

/// Returns the ids of test reports of an execution.
async fn ids(interface: &Interface, at: &str, sought: Ids) -> Result<Ids> {
    let find = |ids: &mut Ids, report: Report| {
        if let Some(id) = ids.get_mut(&report.test_case_identifier) {
            *id = Some(report.id);
        }
        Ok(())
    };
    let begin = || Ok(sought.clone());
    let (_, ids) = interface.get_streamed(at, "TestReports", begin, find).await?;
    Ok(ids)
}
