//! The part of a result that a page shows.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    api::{Api, List},
    failure::Failure,
    page::paged::{Paged, unless_empty},
    record::{Attempt, Instance, InstanceEntry, Report},
};

/// Number of instances that can be chosen on the page.
const INSTANCES: u32 = 100;

/// The part of the result to show, and the list that has led here.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct View {
    /// Id of an instance; by default the first one that failed, or else was retried.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) instance: Option<String>,
    /// Cursor of the instances that can be chosen; by default the first ones.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) instances: Option<String>,
    /// Number of an attempt; by default the first one that failed, if the last one passed.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<String>,
    /// Number of the first step of the page; by default one shortly before the first that failed.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<String>,
    /// Query of the list of results.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
}

pub(super) async fn report(api: &Api, id: Uuid) -> Result<Report, Failure> {
    api.get(&format!("/api/projects/0/testcases/0/testplans/0/testreports/{id}"), &()).await
}

pub(super) async fn instances(
    api: &Api,
    report: &Report,
    view: &View,
) -> Result<List<InstanceEntry>, Failure> {
    let query = Paged { filter: (), cursor: view.instances.clone() };
    api.list(&report.instances(), &query.listed(INSTANCES)).await
}

pub(super) async fn instance(api: &Api, report: &Report, id: &str) -> Result<Instance, Failure> {
    api.get(&format!("{}/{id}", report.instances()), &()).await
}

/// Returns the instance to show.
pub(super) fn chosen<'a>(instances: &'a [InstanceEntry], view: &View) -> Option<&'a InstanceEntry> {
    let asked = view.instance.as_deref();
    let asked = asked.and_then(|id| instances.iter().find(|instance| instance.id == id));
    let failed = || instances.iter().find(|instance| instance.result.is_failure());
    let retried = || instances.iter().find(|instance| instance.attempt > 1);
    asked.or_else(failed).or_else(retried).or_else(|| instances.first())
}

impl Instance {
    /// Returns the attempt to show.
    pub(super) fn attempt(&self, view: &View) -> &Attempt {
        Attempt::chosen(&self.attempts, &self.last, view.attempt.as_deref())
    }
}
