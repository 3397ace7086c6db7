//! How records change: what an update makes of a record, and what is told and kept of it.

use std::collections::BTreeMap;

use assay_auth::Caller;
use assay_events::{Event, publish};
use assay_proto::{Changes, CustomerId, Fault, UserGroupId, UserId, events::RecordChanged};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use sqlx::PgTransaction;

use crate::audit::{self, Entry};

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
fn input<I: DeserializeOwned>(record: &impl Serialize) -> Result<I, Fault> {
    let json = serde_json::to_value(record).map_err(Fault::internal)?;
    serde_json::from_value(json).map_err(Fault::internal)
}

/// What a change has made of a record, as `{"Name": ["old", "new"]}`: of the fields that a client
/// may write, those that differ. None of them is a secret.
pub(crate) fn difference<I>(
    before: &impl Serialize,
    after: &impl Serialize,
) -> Result<String, Fault>
where
    I: Serialize + DeserializeOwned,
{
    let fields = |record: Value| match serde_json::to_value(input::<I>(&record)?) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Fault::internal("an input is an object in JSON")),
        Err(error) => Err(Fault::internal(error)),
    };
    let before = fields(serde_json::to_value(before).map_err(Fault::internal)?)?;
    let after = fields(serde_json::to_value(after).map_err(Fault::internal)?)?;
    let changed: BTreeMap<_, _> = after
        .into_iter()
        .filter(|(name, value)| before.get(name) != Some(value))
        .map(|(name, value)| {
            (name.clone(), [before.get(&name).cloned().unwrap_or_default(), value])
        })
        .collect();
    serde_json::to_string(&changed).map_err(Fault::internal)
}

/// What has happened to a record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Action {
    Created,
    Changed,
    Archived,
    Unarchived,
    Deleted,
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
            Self::Deleted => "Deleted",
        }
    }
}

/// A record, with those that it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Record {
    Customer(CustomerId),
    UserGroup(CustomerId, UserGroupId),
    User(CustomerId, UserGroupId, UserId),
}

impl Record {
    /// Tells others of what the caller did to the record, and keeps it in the audit record.
    pub(crate) async fn was(
        self,
        tx: &mut PgTransaction<'_>,
        action: Action,
        caller: &Caller,
        details: Option<String>,
    ) -> Result<(), Fault> {
        let told = self.changed(action);
        let event = Event::new(self.customer(), &told.source_id, self.noun(), action.name(), &told);
        publish(tx, &event?).await?;

        let entry = Entry::new(&format!("{}{}", told.source, action.name()))
            .of(&told.source, &told.source_id)
            .with(details);
        audit::record(tx, caller, entry).await
    }

    fn customer(self) -> CustomerId {
        match self {
            Self::Customer(customer) | Self::UserGroup(customer, _) | Self::User(customer, ..) => {
                customer
            }
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Customer(_) => "customer",
            Self::UserGroup(..) => "user_group",
            Self::User(..) => "user",
        }
    }

    fn changed(self, action: Action) -> RecordChanged {
        let (source, id, target, target_id) = match self {
            Self::Customer(id) => ("Customer", id.0, "Customer", id.0),
            Self::UserGroup(owner, id) => ("UserGroup", id.0, "Customer", owner.0),
            Self::User(_, owner, id) => ("User", id.0, "UserGroup", owner.0),
        };
        RecordChanged {
            source: source.to_owned(),
            source_id: id.to_string(),
            target: target.to_owned(),
            target_id: Some(target_id.to_string()),
            action: action.name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::identity::{UserGroup, UserGroupInput};

    use super::*;

    fn group() -> UserGroup {
        UserGroup {
            name: "old".into(),
            description: Some("cleared".into()),
            usage_permission: "Login".into(),
            ..UserGroup::default()
        }
    }

    fn change(data_version: Option<&str>) -> Change<UserGroupInput> {
        Change {
            data_version: data_version.map(ToOwned::to_owned),
            changes: Some(UserGroupInput { name: "new".into(), ..UserGroupInput::default() }),
            fields: vec!["Name".into(), "Description".into(), "Id".into()],
        }
    }

    #[test]
    fn an_update_changes_what_it_names_and_nothing_else() {
        for data_version in [None, Some("3")] {
            let input = change(data_version).of("user group", &group(), "3").unwrap();
            assert_eq!(
                input,
                UserGroupInput {
                    name: "new".into(),
                    description: None,
                    usage_permission: "Login".into()
                }
            );
        }
    }

    #[test]
    fn a_change_of_what_was_not_seen_is_refused() {
        let refused = change(Some("2")).of("user group", &group(), "3");
        assert!(matches!(refused, Err(Fault::Stale("user group"))));
    }

    #[test]
    fn a_difference_says_what_was_and_what_is() {
        let after = UserGroup { name: "new".into(), data_version: Some("2".into()), ..group() };
        let difference = difference::<UserGroupInput>(&group(), &after).unwrap();
        assert_eq!(difference, r#"{"Name":["old","new"]}"#);
    }
}
