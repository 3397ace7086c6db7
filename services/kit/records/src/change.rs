//! Updates of records, and the actions that result.

use std::collections::BTreeMap;

use assay_proto::{Changes, Fault};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// An update of a record by a client.
#[derive(Clone)]
pub struct Change<I> {
    /// Version of the record that the update is based on; `None` for any.
    pub data_version: Option<String>,
    pub changes: Option<I>,
    /// JSON names of the fields that `changes` sets or clears.
    pub fields: Vec<String>,
}

impl<I: Changes + Default + DeserializeOwned> Change<I> {
    /// Returns the writable fields of the updated record, given the locked current one. Fails if
    /// the update is based on another version.
    pub fn apply(
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

/// Converts a record to its input message. Fields have the same names in both.
pub fn input<I: Changes + DeserializeOwned>(record: &impl Serialize) -> Result<I, Fault> {
    let mut json = serde_json::to_value(record).map_err(Fault::internal)?;
    if let Value::Object(fields) = &mut json {
        fields.retain(|name, _| I::FIELDS.contains(&name.as_str()));
    }
    serde_json::from_value(json).map_err(Fault::internal)
}

/// Returns the writable fields in which two versions of a record differ, as
/// `{"Name": ["old", "new"]}`. None of them may be a secret.
pub fn difference<I>(before: &impl Serialize, after: &impl Serialize) -> Result<String, Fault>
where
    I: Changes + Serialize + DeserializeOwned,
{
    let fields = |record: Value| match serde_json::to_value(input::<I>(&record)?) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(Fault::internal("an input message is not an object in JSON")),
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

/// An action on a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Created,
    Changed,
    Archived,
    Unarchived,
    Deleted,
}

impl Action {
    /// Returns the action of an update, given whether the record was and is in the archive.
    pub fn of_change(was_archived: bool, is_archived: bool) -> Self {
        match (was_archived, is_archived) {
            (false, true) => Self::Archived,
            (true, false) => Self::Unarchived,
            _ => Self::Changed,
        }
    }

    /// Returns the name in events and in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::Changed => "Changed",
            Self::Archived => "Archived",
            Self::Unarchived => "Unarchived",
            Self::Deleted => "Deleted",
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::catalog::{Project, ProjectInput};

    use super::*;

    fn project() -> Project {
        Project {
            name: "old".into(),
            description: "kept".into(),
            report_template_id: Some("cleared".into()),
            archived: true,
            ..Project::default()
        }
    }

    fn change(data_version: Option<&str>) -> Change<ProjectInput> {
        Change {
            data_version: data_version.map(ToOwned::to_owned),
            changes: Some(ProjectInput { name: "new".into(), ..ProjectInput::default() }),
            fields: vec!["Name".into(), "ReportTemplateId".into(), "CustomerId".into()],
        }
    }

    #[test]
    fn updates_change_named_fields_only() {
        for data_version in [None, Some("3")] {
            let input = change(data_version).apply("project", &project(), "3").unwrap();
            assert_eq!(
                input,
                ProjectInput {
                    name: "new".into(),
                    description: "kept".into(),
                    archived: true,
                    report_template_id: None,
                    retention_in_days: None,
                    default_branch: Some(String::new()),
                    serves_metrics: false,
                    ticket_url: String::new(),
                }
            );
        }
    }

    #[test]
    fn updates_of_an_outdated_version_are_rejected() {
        let refused = change(Some("2")).apply("project", &project(), "3");
        assert!(matches!(refused, Err(Fault::Stale("project"))));
    }

    #[test]
    fn differences_have_old_and_new_values() {
        let after = Project { name: "new".into(), data_version: "2".into(), ..project() };
        let difference = difference::<ProjectInput>(&project(), &after).unwrap();
        assert_eq!(difference, r#"{"Name":["old","new"]}"#);
    }

    #[test]
    fn archiving_is_an_action_of_its_own() {
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
