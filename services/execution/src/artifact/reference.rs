//! References of results to artifacts: names, which become links when they are read.

use assay_proto::{
    ArtifactId, CustomerId, Fault, ShareLinkId, TestReportId,
    execution::{Instance, Step},
};

use super::{Artifacts, link, rules, store};

impl Artifacts {
    /// Replaces the names of artifacts in an instance by links, which depend on the share link if there is
    /// one. Names of missing artifacts are removed.
    pub(crate) async fn resolve(
        &self,
        customer: CustomerId,
        report: TestReportId,
        share_link: Option<ShareLinkId>,
        instance: &mut Instance,
    ) -> Result<(), Fault> {
        let names: Vec<String> =
            texts(instance).filter(|text| rules::is_name(text)).cloned().collect();
        if names.is_empty() {
            return Ok(());
        }
        let found = store::find_by_names(&self.db, customer, report, &names).await?;
        let expires = store::now(&self.db).await? + link::LIFETIME;
        for text in texts_mut(instance).filter(|text| rules::is_name(text)) {
            let id = found.get(text.as_str());
            let link = |id: &ArtifactId| self.links.link(customer, *id, text, expires, share_link);
            *text = id.map_or_else(String::new, link);
        }
        remove_empty(instance);
        Ok(())
    }

    /// Removes the links of an instance that are not to artifacts, before [`Artifacts::resolve`].
    pub(crate) fn remove_foreign(instance: &mut Instance) {
        for text in texts_mut(instance).filter(|text| !rules::is_name(text)) {
            text.clear();
        }
        remove_empty(instance);
    }
}

/// Removes the screenshots of an instance that are neither links nor names any more.
fn remove_empty(instance: &mut Instance) {
    let earlier = instance.attempts.iter_mut().flat_map(|attempt| &mut attempt.steps);
    for step in earlier.chain(&mut instance.steps) {
        step.screenshots.retain(|link| !link.is_empty());
    }
}

/// Returns the texts of an instance that may be names of artifacts.
fn texts(instance: &Instance) -> impl Iterator<Item = &String> {
    let own = [
        &instance.artifacts_uri,
        &instance.report_uri,
        &instance.debug_log_uri,
        &instance.execution_log_uri,
        &instance.installation_log_uri,
    ];
    let earlier = instance.attempts.iter().flat_map(|attempt| {
        [
            &attempt.artifacts_uri,
            &attempt.report_uri,
            &attempt.debug_log_uri,
            &attempt.execution_log_uri,
            &attempt.installation_log_uri,
        ]
    });
    let steps = instance.attempts.iter().flat_map(|attempt| &attempt.steps).chain(&instance.steps);
    let of_steps = steps.flat_map(|step| step.screenshots.iter().chain([&step.thumbnail]));
    own.into_iter().chain(earlier).chain(of_steps)
}

/// Returns the same texts as [`texts`], to change them.
fn texts_mut(instance: &mut Instance) -> impl Iterator<Item = &mut String> {
    let own = [
        &mut instance.artifacts_uri,
        &mut instance.report_uri,
        &mut instance.debug_log_uri,
        &mut instance.execution_log_uri,
        &mut instance.installation_log_uri,
    ];
    let earlier = instance.attempts.iter_mut().flat_map(|attempt| {
        let links = [
            &mut attempt.artifacts_uri,
            &mut attempt.report_uri,
            &mut attempt.debug_log_uri,
            &mut attempt.execution_log_uri,
            &mut attempt.installation_log_uri,
        ];
        links.into_iter().chain(attempt.steps.iter_mut().flat_map(of_step))
    });
    own.into_iter().chain(instance.steps.iter_mut().flat_map(of_step)).chain(earlier)
}

fn of_step(step: &mut Step) -> impl Iterator<Item = &mut String> {
    step.screenshots.iter_mut().chain([&mut step.thumbnail])
}
