//! The events that the catalog publishes about its records.

use assay_auth::{Caller, actor};
use assay_events::{Event, EventType, RecordKind};
use assay_proto::{
    Actor, CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId,
    TestSetId,
    events::{ChangedRecord, RecordChanged, RecordsChanged, SecretsSeen},
};
use assay_records::Action;
use uuid::Uuid;

/// Number of records in an event of several.
const RECORDS_IN_EVENT: usize = 100;

/// A record that events are about, after the record that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventSource {
    Project(CustomerId, ProjectId),
    TestCase(ProjectId, TestCaseId),
    /// Its project is not needed for secrets that were seen.
    TestPlan(Option<ProjectId>, TestCaseId, TestPlanId),
    TestSet(ProjectId, TestSetId),
    Subject(ProjectId, SubjectId),
    Environment(ProjectId, EnvironmentId),
}

impl EventSource {
    /// Returns the event of an action of the current caller on the record, which has this version now.
    pub(crate) fn event(
        self,
        action: Action,
        customer: CustomerId,
        version: Option<&str>,
    ) -> Result<Event, Fault> {
        let (kind, ..) = self.parts();
        let data = self.data(action, version, actor::current());
        Event::new(customer, &data.source_id, EventType::Record(kind, action), &data)
    }

    /// Returns the events of an action of the current caller on several records of one kind in a project.
    pub(crate) fn events(
        records: &[Self],
        action: Action,
        customer: CustomerId,
        project: ProjectId,
    ) -> impl Iterator<Item = Result<Event, Fault>> {
        records.chunks(RECORDS_IN_EVENT).map(move |records| {
            let (kind, _, target, _) = records[0].parts();
            let changed = records.iter().map(|record| {
                let (_, id, _, target_id) = record.parts();
                ChangedRecord { id: id.to_string(), target_id: target_id.to_string() }
            });
            let data = RecordsChanged {
                source: kind.name().to_owned(),
                target: target.name().to_owned(),
                action: action.name().to_owned(),
                records: changed.collect(),
                project_id: Some(project.to_string()),
                actor: Some(actor::current()),
            };
            Event::new(customer, project, EventType::Records(kind, action), &data)
        })
    }

    /// Returns the event of a caller reading secrets of the record.
    pub(crate) fn secrets_seen(self, caller: &Caller) -> Result<Event, Fault> {
        let (kind, id, ..) = self.parts();
        let seen = SecretsSeen {
            source: kind.name().to_owned(),
            source_id: id.to_string(),
            user_id: caller.user.to_string(),
            address: caller.address.map(|address| address.to_string()),
        };
        Event::new(caller.customer, id, EventType::SecretsSeen, &seen)
    }

    /// Returns the data of the event of an action on the record, which has this version now.
    pub(crate) fn data(self, action: Action, version: Option<&str>, actor: Actor) -> RecordChanged {
        let (kind, id, target, target_id) = self.parts();
        RecordChanged {
            source: kind.name().to_owned(),
            source_id: id.to_string(),
            target: target.name().to_owned(),
            target_id: Some(target_id.to_string()),
            action: action.name().to_owned(),
            project_id: self.project().map(|project| project.to_string()),
            record_version: version.map(ToOwned::to_owned),
            actor: Some(actor),
        }
    }

    fn project(self) -> Option<ProjectId> {
        match self {
            Self::TestPlan(project, ..) => project,
            Self::Project(_, project)
            | Self::TestCase(project, _)
            | Self::TestSet(project, _)
            | Self::Subject(project, _)
            | Self::Environment(project, _) => Some(project),
        }
    }

    /// Returns the kind and the id of the record, then those of the one that it belongs to.
    fn parts(self) -> (RecordKind, Uuid, RecordKind, Uuid) {
        use RecordKind as Kind;
        match self {
            Self::Project(owner, id) => (Kind::Project, id.0, Kind::Customer, owner.0),
            Self::TestCase(owner, id) => (Kind::TestCase, id.0, Kind::Project, owner.0),
            Self::TestPlan(_, owner, id) => (Kind::TestPlan, id.0, Kind::TestCase, owner.0),
            Self::TestSet(owner, id) => (Kind::TestSet, id.0, Kind::Project, owner.0),
            Self::Subject(owner, id) => (Kind::Subject, id.0, Kind::Project, owner.0),
            Self::Environment(owner, id) => (Kind::Environment, id.0, Kind::Project, owner.0),
        }
    }
}
