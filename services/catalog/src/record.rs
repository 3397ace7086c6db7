//! What others are told of records.

use assay_auth::Caller;
use assay_events::Event;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId, TestSetId,
    events::{RecordChanged, SecretsSeen},
};
use assay_records::Action;
use uuid::Uuid;

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
