//! The types of events between services.

use assay_records::Action;

use Action::{Archived, Changed, Created, Deleted, Unarchived};

/// The type of an event: a kind of record and what has happened to it. Events on the stream of
/// notifications have no type, because clients choose their words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// A record was created, changed, archived, unarchived or deleted. Carries `RecordChanged`.
    Record(RecordKind, Action),
    /// Several records were created or changed at once. Carries `RecordsChanged`.
    Records(RecordKind, Action),
    /// A user has seen secrets of a record. Carries `SecretsSeen`.
    SecretsSeen,
    /// The retention of a project's results was set. Carries `RetentionChanged`.
    RetentionSet,
    /// The appliances of a customer were set. Carries `AppliancesChanged`.
    AppliancesSet,
    /// A record has ended at its date, such as a known failure. Carries `RecordChanged`.
    Expired(RecordKind),
    /// A record ends soon, at its date, such as a known failure. Carries `RecordChanged`.
    Expiring(RecordKind),
    /// An action was added to the audit log. Carries `AuditRecorded`.
    Audited,
    /// A test case has reached the threshold of a monitor that only notifies, or has recovered. Carries
    /// `RecordChanged`.
    Alarm(AlarmChange),
    /// An incident has ended. Carries `RecordChanged`.
    IncidentEnded,
    /// An execution was requested, got results, or ended. Carries `ExecutionChanged`.
    Execution(ExecutionAction),
    /// Test reports of an execution were finished or reviewed. Carries `ReportsChanged`.
    Reports(ReportsAction),
}

/// Declares the kinds of records, each with its name in subjects and the service that publishes its
/// changes.
macro_rules! record_kinds {
    ($($kind:ident $noun:literal by $service:literal,)*) => {
        /// The kinds of records that report changes with `RecordChanged`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RecordKind {
            $($kind,)*
        }

        impl RecordKind {
            const ALL: &[Self] = &[$(Self::$kind,)*];

            /// Returns the name in subjects, such as `test_case`.
            pub fn noun(self) -> &'static str {
                match self { $(Self::$kind => $noun,)* }
            }

            /// Returns the name of several in subjects, such as `test_cases`.
            fn plural(self) -> &'static str {
                match self { $(Self::$kind => concat!($noun, "s"),)* }
            }

            /// Returns the name in messages, such as `TestCase`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => stringify!($kind),)* }
            }

            pub(crate) fn service(self) -> &'static str {
                match self { $(Self::$kind => $service,)* }
            }
        }
    };
}

record_kinds! {
    Customer "customer" by "identity",
    UserGroup "user_group" by "identity",
    User "user" by "identity",
    Project "project" by "catalog",
    TestCase "test_case" by "catalog",
    TestPlan "test_plan" by "catalog",
    TestSet "test_set" by "catalog",
    Subject "subject" by "catalog",
    Environment "environment" by "catalog",
    KnownFailure "known_failure" by "execution",
    CauseRule "cause_rule" by "execution",
    TestCaseState "test_case_state" by "execution",
    Monitor "monitor" by "execution",
    Incident "incident" by "execution",
    ShareLink "share_link" by "execution",
    Execution "execution" by "execution",
}

/// The changes of several records at once that services publish.
const SEVERAL: [(RecordKind, Action); 3] = [
    (RecordKind::TestCase, Created),
    (RecordKind::TestCase, Changed),
    (RecordKind::TestPlan, Created),
];

/// Change of an alarm of a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlarmChange {
    Raised,
    Recovered,
}

/// Progress of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionAction {
    Requested,
    Progressed,
    Completed,
    Canceled,
    /// No engine has begun its work for some time.
    Waiting,
    /// An operator rebuilt it from its results.
    Rebuilt,
}

/// Progress of test reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportsAction {
    Finished,
    Reviewed,
    /// An operator rebuilt them from their results.
    Rebuilt,
}

impl EventType {
    /// Returns all types of events that services publish, those about one kind of record together.
    pub fn all() -> impl Iterator<Item = Self> {
        let (execution, others) = RecordKind::ALL.split_last().expect("there are kinds");
        others
            .iter()
            .flat_map(|kind| kind.types())
            .chain([Self::SecretsSeen, Self::RetentionSet, Self::Audited])
            .chain(SEVERAL.map(|(kind, action)| Self::Records(kind, action)))
            .chain(ExecutionAction::ALL.map(Self::Execution))
            .chain(execution.types())
            .chain(ReportsAction::ALL.map(Self::Reports))
    }

    /// Returns the type with this service, noun and action in lower case; `None` if this release
    /// does not know it.
    pub(crate) fn parse(service: &str, noun: &str, action: &str) -> Option<Self> {
        let of_record = RecordKind::ALL.iter().find(|kind| kind.noun() == noun);
        let actions = [Created, Changed, Archived, Unarchived, Deleted];
        let changed = actions.into_iter().find(|known| known.name().eq_ignore_ascii_case(action));
        let found = match of_record.zip(changed) {
            Some((kind, action)) => Some(Self::Record(*kind, action)),
            None => Self::all()
                .find(|known| known.noun() == noun && known.action().eq_ignore_ascii_case(action)),
        };
        found.filter(|found| found.service() == service)
    }

    /// Returns the service that publishes the event.
    pub fn service(self) -> &'static str {
        match self {
            Self::Record(kind, _)
            | Self::Records(kind, _)
            | Self::Expired(kind)
            | Self::Expiring(kind) => kind.service(),
            Self::Audited | Self::AppliancesSet => "identity",
            Self::SecretsSeen | Self::RetentionSet => "catalog",
            Self::Alarm(_) | Self::IncidentEnded | Self::Execution(_) | Self::Reports(_) => {
                "execution"
            }
        }
    }

    /// Returns the kind of the record in subjects, such as `test_case`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Record(kind, _) | Self::Expired(kind) | Self::Expiring(kind) => kind.noun(),
            Self::Audited => "audit_entry",
            Self::Records(kind, _) => kind.plural(),
            Self::SecretsSeen => "secrets",
            Self::RetentionSet => "retention",
            Self::AppliancesSet => RecordKind::Customer.noun(),
            Self::Alarm(_) => RecordKind::Monitor.noun(),
            Self::IncidentEnded => RecordKind::Incident.noun(),
            Self::Execution(_) => "execution",
            Self::Reports(_) => "test_report",
        }
    }

    /// Returns what has happened, such as `Created`. Subjects have it in lower case.
    pub fn action(self) -> &'static str {
        match self {
            Self::Record(_, action) | Self::Records(_, action) => action.name(),
            Self::SecretsSeen => "Seen",
            Self::RetentionSet => "Set",
            Self::AppliancesSet => "AppliancesSet",
            Self::Expired(_) => "Expired",
            Self::Expiring(_) => "Expiring",
            Self::Audited => "Recorded",
            Self::Alarm(AlarmChange::Raised) => "Alarmed",
            Self::Alarm(AlarmChange::Recovered) => "Recovered",
            Self::IncidentEnded => "Ended",
            Self::Execution(action) => action.name(),
            Self::Reports(action) => action.name(),
        }
    }

    /// Returns the name of the message in `events.proto` that the event carries.
    pub fn message(self) -> &'static str {
        match self {
            Self::Record(..)
            | Self::Expired(_)
            | Self::Expiring(_)
            | Self::Alarm(_)
            | Self::IncidentEnded => "RecordChanged",
            Self::Audited => "AuditRecorded",
            Self::Records(..) => "RecordsChanged",
            Self::SecretsSeen => "SecretsSeen",
            Self::RetentionSet => "RetentionChanged",
            Self::AppliancesSet => "AppliancesChanged",
            Self::Execution(_) => "ExecutionChanged",
            Self::Reports(_) => "ReportsChanged",
        }
    }
}

impl RecordKind {
    /// Returns the types of events about one record of this kind.
    fn types(self) -> impl Iterator<Item = EventType> {
        let expires = matches!(self, Self::KnownFailure | Self::TestCaseState);
        let alarms = if self == Self::Monitor { AlarmChange::ALL } else { &[] };
        let actions = self.actions().iter().map(move |&action| EventType::Record(self, action));
        actions
            .chain(expires.then_some(EventType::Expired(self)))
            .chain(expires.then_some(EventType::Expiring(self)))
            .chain(alarms.iter().map(|&change| EventType::Alarm(change)))
            .chain((self == Self::Incident).then_some(EventType::IncidentEnded))
            .chain((self == Self::Customer).then_some(EventType::AppliancesSet))
    }

    /// Returns what happens to records of this kind. Users, their groups, test plans, known failures, rules
    /// for causes, states of test cases and monitors have no archive. The deletion of a test plan is published
    /// with that of its project, but not with that of its test case; the deletion of an execution is not
    /// published. Incidents change without an event.
    fn actions(self) -> &'static [Action] {
        match self {
            Self::CauseRule | Self::ShareLink => &[Created, Deleted],
            Self::UserGroup
            | Self::User
            | Self::TestPlan
            | Self::KnownFailure
            | Self::TestCaseState
            | Self::Monitor => &[Created, Changed, Deleted],
            Self::Incident => &[Created],
            Self::Execution => &[Changed, Archived, Unarchived],
            _ => &[Created, Changed, Archived, Unarchived, Deleted],
        }
    }
}

impl AlarmChange {
    const ALL: &[Self] = &[Self::Raised, Self::Recovered];
}

impl ExecutionAction {
    const ALL: [Self; 6] = [
        Self::Requested,
        Self::Progressed,
        Self::Completed,
        Self::Canceled,
        Self::Waiting,
        Self::Rebuilt,
    ];

    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requested => "Requested",
            Self::Progressed => "Progressed",
            Self::Completed => "Completed",
            Self::Canceled => "Canceled",
            Self::Waiting => "Waiting",
            Self::Rebuilt => "Rebuilt",
        }
    }
}

impl ReportsAction {
    const ALL: [Self; 3] = [Self::Finished, Self::Reviewed, Self::Rebuilt];

    /// Returns the name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Finished => "Finished",
            Self::Reviewed => "Reviewed",
            Self::Rebuilt => "Rebuilt",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_parsed_from_its_own_words() {
        for known in EventType::all() {
            let (noun, action) = (known.noun(), known.action().to_ascii_lowercase());
            assert_eq!(EventType::parse(known.service(), noun, &action), Some(known));
        }
    }

    #[test]
    fn words_of_another_service_or_release_are_not_a_type() {
        for [service, noun, action] in [
            ["catalog", "customer", "deleted"],
            ["execution", "test_report", "created"],
            ["notifications", "testcase", "created"],
            ["identity", "token", "revoked"],
        ] {
            assert_eq!(EventType::parse(service, noun, action), None, "{service} {noun} {action}");
        }
    }
}
