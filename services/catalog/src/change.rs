//! How records change: what an update makes of a record, and what others are told of it.

use assay_auth::Caller;
use assay_events::Event;
use assay_proto::{
    Changes, CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId,
    TestSetId,
    events::{RecordChanged, SecretsSeen},
};
use serde::{Serialize, de::DeserializeOwned};
use uuid::Uuid;

/// What a client wants to change of a record.
pub(crate) struct Change<I> {
    /// The version that the client has seen, if it cares.
    pub(crate) data_version: Option<String>,
    pub(crate) changes: Option<I>,
    /// The JSON names of the fields that `changes` sets or clears.
    pub(crate) fields: Vec<String>,
}

impl<I: Changes + Default + DeserializeOwned> Change<I> {
    /// All that a client may write of a record as it is to be, given the record as it is, under a
    /// lock. A record is its own input: what a client reads is named like what it writes.
    pub(crate) fn of(
        self,
        noun: &'static str,
        current: &impl Serialize,
        data_version: &str,
    ) -> Result<I, Fault> {
        if self.data_version.is_some_and(|seen| seen != data_version) {
            return Err(Fault::Stale(noun));
        }
        Ok(input::<I>(current)?.with(self.changes.unwrap_or_default(), &self.fields))
    }
}

/// What a record says, as a client would write it.
pub(crate) fn input<I: DeserializeOwned>(record: &impl Serialize) -> Result<I, Fault> {
    let json = serde_json::to_value(record).map_err(Fault::internal)?;
    serde_json::from_value(json).map_err(Fault::internal)
}

/// What has happened to a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Action {
    Created,
    Changed,
    Archived,
    Unarchived,
}

impl Action {
    /// What a change of a record was, given whether it was and is in the archive.
    pub(crate) fn of_change(was_archived: bool, is_archived: bool) -> Self {
        match (was_archived, is_archived) {
            (false, true) => Self::Archived,
            (true, false) => Self::Unarchived,
            _ => Self::Changed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Changed => "Changed",
            Self::Archived => "Archived",
            Self::Unarchived => "Unarchived",
        }
    }
}

/// A record, after the one that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Project(CustomerId, ProjectId),
    TestCase(ProjectId, TestCaseId),
    TestPlan(TestCaseId, TestPlanId),
    TestSet(ProjectId, TestSetId),
    Subject(ProjectId, SubjectId),
    Environment(ProjectId, EnvironmentId),
}

impl Record {
    /// The event that tells of it.
    pub(crate) fn was(self, action: Action, customer: CustomerId) -> Result<Event, Fault> {
        let data = self.changed(action);
        Event::new(customer, &data.source_id, self.noun(), action.name(), &data)
    }

    /// The event that tells that a caller has seen its secrets.
    pub(crate) fn seen_by(self, caller: &Caller) -> Result<Event, Fault> {
        let (source, id, ..) = self.names();
        let seen = SecretsSeen {
            source: source.to_owned(),
            source_id: id.to_string(),
            user_id: caller.user.to_string(),
            address: caller.address.map(|address| address.to_string()),
        };
        Event::new(caller.customer, id, "secrets", "seen", &seen)
    }

    /// What the event says.
    pub(crate) fn changed(self, action: Action) -> RecordChanged {
        let (source, id, target, target_id) = self.names();
        RecordChanged {
            source: source.to_owned(),
            source_id: id.to_string(),
            target: target.to_owned(),
            target_id: Some(target_id.to_string()),
            action: action.name().to_owned(),
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Project(..) => "project",
            Self::TestCase(..) => "test_case",
            Self::TestPlan(..) => "test_plan",
            Self::TestSet(..) => "test_set",
            Self::Subject(..) => "subject",
            Self::Environment(..) => "environment",
        }
    }

    fn names(self) -> (&'static str, Uuid, &'static str, Uuid) {
        match self {
            Self::Project(owner, id) => ("Project", id.0, "Customer", owner.0),
            Self::TestCase(owner, id) => ("TestCase", id.0, "Project", owner.0),
            Self::TestPlan(owner, id) => ("TestPlan", id.0, "TestCase", owner.0),
            Self::TestSet(owner, id) => ("TestSet", id.0, "Project", owner.0),
            Self::Subject(owner, id) => ("Subject", id.0, "Project", owner.0),
            Self::Environment(owner, id) => ("Environment", id.0, "Project", owner.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::catalog::{Project, ProjectInput};

    use super::*;

    fn change(data_version: Option<&str>) -> Change<ProjectInput> {
        Change {
            data_version: data_version.map(ToOwned::to_owned),
            changes: Some(ProjectInput { name: "new".into(), ..ProjectInput::default() }),
            fields: vec!["Name".into(), "ReportTemplateId".into(), "CustomerId".into()],
        }
    }

    #[test]
    fn an_update_changes_what_it_names_and_nothing_else() {
        let project = Project {
            name: "old".into(),
            description: "kept".into(),
            report_template_id: Some("cleared".into()),
            archived: true,
            ..Project::default()
        };
        for data_version in [None, Some("3")] {
            let input = change(data_version).of("project", &project, "3").unwrap();
            assert_eq!(
                input,
                ProjectInput {
                    name: "new".into(),
                    description: "kept".into(),
                    archived: true,
                    report_template_id: None,
                }
            );
        }
    }

    #[test]
    fn a_change_of_what_was_not_seen_is_refused() {
        let refused = change(Some("2")).of("project", &Project::default(), "3");
        assert!(matches!(refused, Err(Fault::Stale("project"))));
    }

    #[test]
    fn the_archive_is_told_of_by_its_name() {
        for (was, is, action) in [
            (false, false, Action::Changed),
            (true, true, Action::Changed),
            (false, true, Action::Archived),
            (true, false, Action::Unarchived),
        ] {
            assert_eq!(Action::of_change(was, is), action);
        }
    }
}
