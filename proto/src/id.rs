//! Typed ids of records.

use uuid::Uuid;

use crate::Fault;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $noun:literal),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "sql", derive(sqlx::Type), sqlx(transparent))]
        pub struct $name(pub Uuid);

        impl $name {
            /// Returns a new id (UUIDv7). Later ids sort after earlier ones.
            #[expect(clippy::new_without_default, reason = "every call returns a different id")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// Parses the id in a path. Text that is not an id refers to no record: `NotFound`.
            pub fn from_path(text: &str) -> Result<Self, Fault> {
                parse(text).map(Self).ok_or(Fault::NotFound($noun))
            }

            /// Parses an optional id in a path.
            pub fn from_path_if_any(text: Option<&str>) -> Result<Option<Self>, Fault> {
                text.map(Self::from_path).transpose()
            }

            /// Parses the id in a path that may leave it out. Empty text counts as absent.
            pub fn from_path_unless_empty(text: &str) -> Result<Option<Self>, Fault> {
                (!text.is_empty()).then(|| Self::from_path(text)).transpose()
            }

            /// Parses an id in a stored record or event. Text that is not an id is `Internal`.
            pub fn from_record(text: &str) -> Result<Self, Fault> {
                parse(text).map(Self).ok_or_else(|| {
                    Fault::internal(format!(concat!("not a valid ", $noun, " id: {:?}"), text))
                })
            }

            /// Parses the id in `field` of a body or query. Text that is not an id is `Invalid`.
            pub fn from_field(field: &'static str, text: &str) -> Result<Self, Fault> {
                parse(text).map(Self).ok_or_else(|| {
                    Fault::invalid(field, concat!("must be a valid ", $noun, " id"))
                })
            }

            /// Parses an optional id in `field` of a body or query. Empty text counts as absent.
            pub fn from_field_if_any(
                field: &'static str,
                text: Option<&str>,
            ) -> Result<Option<Self>, Fault> {
                let text = text.filter(|text| !text.is_empty());
                text.map(|text| Self::from_field(field, text)).transpose()
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

ids! {
    /// Id of a customer; every row has one.
    CustomerId "customer",
    /// Id of a user of one customer, as in the interface, tokens and events. Only the identity
    /// service knows the account of the user.
    UserId "user",
    /// Id of an account, which can be a user of several customers.
    AccountId "account",
    UserGroupId "user group",
    ApiTokenId "API token",
    /// Id of a session, which all tokens of one login share.
    SessionId "session",
    AuditEntryId "audit entry",
    ProjectId "project",
    TestCaseId "test case",
    TestPlanId "test plan",
    TestSetId "test set",
    SubjectId "subject",
    EnvironmentId "environment",
    FileId "file",
    /// Id of the bytes of files, which files of a project with the same ones share.
    ContentId "content",
    /// Id of an upload in several requests, of which a file will be made.
    UploadId "upload",
    ExecutionId "execution",
    TestReportId "test report",
    ReviewId "review",
    InstanceId "instance",
    KnownFailureId "known failure",
    CauseRuleId "cause rule",
    PoolId "pool",
    PoolValueId "value of a pool",
    MonitorId "monitor",
    MonitorActionId "action of a monitor",
    IncidentId "incident",
    ShareLinkId "share link",
    LaunchId "launch",
    ArtifactId "artifact",
    ScheduleId "schedule",
    LeaseId "lease",
    EngineId "engine",
    NotificationId "notification",
    WebhookId "webhook",
}

/// Parses a UUID in hyphenated lower case. Other spellings are rejected, so that each record has
/// one path.
fn parse(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    let mut spelling = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut spelling) == text).then_some(id)
}
