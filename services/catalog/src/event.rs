//! The events that the catalog publishes about its records.

use assay_auth::Caller;
use assay_events::{Event, EventType, RecordKind};
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId, TestSetId,
    events::{RecordChanged, SecretsSeen},
};
use assay_records::Action;
use uuid::Uuid;

/// A record that events are about, after the record that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EventSource {
    Project(CustomerId, ProjectId),
    TestCase(ProjectId, TestCaseId),
    TestPlan(TestCaseId, TestPlanId),
    TestSet(ProjectId, TestSetId),
    Subject(ProjectId, SubjectId),
    Environment(ProjectId, EnvironmentId),
}

impl EventSource {
    /// Returns the event of an action on the record.
    pub(crate) fn event(self, action: Action, customer: CustomerId) -> Result<Event, Fault> {
        let data = self.data(action);
        Event::new(customer, &data.source_id, EventType::Record(self.kind(), action), &data)
    }

    /// Returns the event of a caller reading secrets of the record.
    pub(crate) fn secrets_seen(self, caller: &Caller) -> Result<Event, Fault> {
        let (id, ..) = self.ids();
        let seen = SecretsSeen {
            source: self.kind().name().to_owned(),
            source_id: id.to_string(),
            user_id: caller.user.to_string(),
            address: caller.address.map(|address| address.to_string()),
        };
        Event::new(caller.customer, id, EventType::SecretsSeen, &seen)
    }

    /// Returns the data of the event of an action.
    pub(crate) fn data(self, action: Action) -> RecordChanged {
        let (id, target, target_id) = self.ids();
        RecordChanged {
            source: self.kind().name().to_owned(),
            source_id: id.to_string(),
            target: target.to_owned(),
            target_id: Some(target_id.to_string()),
            action: action.name().to_owned(),
        }
    }

    fn kind(self) -> RecordKind {
        match self {
            Self::Project(..) => RecordKind::Project,
            Self::TestCase(..) => RecordKind::TestCase,
            Self::TestPlan(..) => RecordKind::TestPlan,
            Self::TestSet(..) => RecordKind::TestSet,
            Self::Subject(..) => RecordKind::Subject,
            Self::Environment(..) => RecordKind::Environment,
        }
    }

    /// Returns the id of the record, then the kind and the id of the one that it belongs to.
    fn ids(self) -> (Uuid, &'static str, Uuid) {
        match self {
            Self::Project(owner, id) => (id.0, "Customer", owner.0),
            Self::TestCase(owner, id) => (id.0, "Project", owner.0),
            Self::TestPlan(owner, id) => (id.0, "TestCase", owner.0),
            Self::TestSet(owner, id) => (id.0, "Project", owner.0),
            Self::Subject(owner, id) => (id.0, "Project", owner.0),
            Self::Environment(owner, id) => (id.0, "Project", owner.0),
        }
    }
}
