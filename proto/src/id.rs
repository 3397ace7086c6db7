//! Ids that cannot be mixed up.

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
            /// A new id; later ids sort after earlier ones.
            #[expect(clippy::new_without_default, reason = "every call makes another one")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            /// Reads the id in a path: text that is no id names no record.
            pub fn named(text: &str) -> Result<Self, Fault> {
                parse(text).map(Self).ok_or(Fault::NotFound($noun))
            }

            /// Reads the id in a path that may leave it out.
            pub fn named_if_any(text: Option<&str>) -> Result<Option<Self>, Fault> {
                text.map(Self::named).transpose()
            }

            /// Reads the id that a client sent in `field` of a body or query.
            pub fn parse(field: &'static str, text: &str) -> Result<Self, Fault> {
                parse(text).map(Self).ok_or_else(|| {
                    Fault::invalid(field, concat!("must be the id of a ", $noun))
                })
            }

            /// Reads the optional id that a client sent in `field` of a body or query; empty text
            /// is none.
            pub fn parse_if_any(
                field: &'static str,
                text: Option<&str>,
            ) -> Result<Option<Self>, Fault> {
                let text = text.filter(|text| !text.is_empty());
                text.map(|text| Self::parse(field, text)).transpose()
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
    /// The customer that a row belongs to.
    CustomerId "customer",
    /// A user of one customer: towards customers, and in tokens and events. The account behind it
    /// is known to the identity service alone.
    UserId "user",
    /// An account, which can be a user of several customers.
    AccountId "account",
    UserGroupId "user group",
    ApiTokenId "API token",
    /// What all tokens that come from one login have in common.
    SessionId "session",
    AuditEntryId "audit entry",
    ProjectId "project",
    TestCaseId "test case",
    TestPlanId "test plan",
    TestSetId "test set",
    SubjectId "subject",
    EnvironmentId "environment",
    ExecutionId "execution",
    TestReportId "test report",
    InstanceId "instance",
    ArtifactId "artifact",
    ScheduleId "schedule",
    LeaseId "lease",
    NotificationId "notification",
    WebhookId "webhook",
}

/// Only the hyphenated lower-case spelling is an id: a record has one name.
fn parse(text: &str) -> Option<Uuid> {
    let id = Uuid::try_parse(text).ok()?;
    let mut spelling = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut spelling) == text).then_some(id)
}
