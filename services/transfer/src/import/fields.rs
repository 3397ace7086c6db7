//! The fields of records that clients write.

use serde_json::{Map, Value};
use uuid::Uuid;

use super::text;

/// The mask of secrets.
const MASK: &str = "********";

pub(super) const OF_PROJECT: [&str; 6] = [
    "Name",
    "Description",
    "ReportTemplateId",
    "RetentionInDays",
    "DefaultBranch",
    "ServesMetrics",
];
pub(super) const OF_SUBJECT: [&str; 15] = [
    "Identifier",
    "Name",
    "Uri",
    "SubjectType",
    "NeedsPublicIp",
    "SoftwareFileId",
    "SoftwareFileName",
    "SoftwareFileSize",
    "InstallationFileId",
    "InstallationFileName",
    "InstructionFileId",
    "InstructionFileName",
    "FrameworkFileId",
    "ModificationAllowed",
    "Variables",
];
pub(super) const OF_ENVIRONMENT: [&str; 10] = [
    "Name",
    "ImageFileId",
    "ImageFileSize",
    "ModificationAllowed",
    "TargetGroup",
    "FileProjectId",
    "Username",
    "Password",
    "Labels",
    "Exclusive",
];
pub(super) const OF_SET: [&str; 7] =
    ["Name", "Description", "Priority", "Tags", "StopOnFailure", "TimeOut", "Gate"];
pub(super) const OF_PLAN: [&str; 12] = [
    "Instances",
    "MinimumDurationInMin",
    "MaximumDurationInMin",
    "TestType",
    "Status",
    "Description",
    "MonitoringMessage",
    "InputFileId",
    "SupportingFilesId",
    "AutomationSupportingFilesId",
    "AutomatedTestContainerId",
    "Variables",
];

/// Clears masked secrets, which only the installation that exported them knows.
pub(super) fn unmask(record: &mut Map<String, Value>) {
    if text(record, "Password") == MASK {
        record.remove("Password");
    }
    let variables = record.get_mut("Variables").and_then(Value::as_array_mut);
    for variable in variables.into_iter().flatten() {
        if variable["IsSecured"] == true && variable["Content"] == MASK {
            variable["Content"] = "".into();
        }
    }
}

/// Fields with ids of files.
const OF_FILES: [&str; 5] =
    ["SoftwareFileId", "InstallationFileId", "InstructionFileId", "FrameworkFileId", "ImageFileId"];

/// Marks the ids of files, which are not part of an export, as those of another system.
pub(super) fn mark_files(record: &mut Map<String, Value>) {
    for field in OF_FILES {
        if let Some(Value::String(id)) = record.get_mut(field)
            && Uuid::try_parse(id).is_ok()
        {
            *id = format!("not moved: {id}");
        }
    }
    if Uuid::try_parse(text(record, "FileProjectId")).is_ok() {
        record.remove("FileProjectId");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// The interface document, which another test compares with the contracts.
    const DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

    #[test]
    fn ids_of_files_that_are_not_moved_are_marked() {
        let id = "019cade2-11c0-7e81-9ed2-4af6c6434ad2";
        let record = json!({
            "SoftwareFileId": id, "InstructionFileId": "manual", "ImageFileId": null,
            "FileProjectId": id, "Name": id,
        });
        let Value::Object(mut record) = record else { unreachable!() };
        mark_files(&mut record);
        let marked = json!({
            "SoftwareFileId": format!("not moved: {id}"), "InstructionFileId": "manual",
            "ImageFileId": null, "Name": id,
        });
        assert_eq!(Value::Object(record), marked);
    }

    #[test]
    fn every_writable_field_moves_with_its_record() {
        let document: Value = serde_json::from_str(DOCUMENT).unwrap();
        // References to other records and the archived state are written in requests of their own.
        for (input, fields, apart) in [
            ("ProjectInput", &OF_PROJECT[..], &["Archived"][..]),
            ("SubjectInput", &OF_SUBJECT, &["Archived", "BaseSubjectId"]),
            ("EnvironmentInput", &OF_ENVIRONMENT, &["Archived", "ContainedSubject"]),
            (
                "TestSetInput",
                &OF_SET,
                &["Archived", "SelectedEnvironmentId", "SelectedSubjectId", "TestCases"],
            ),
            ("TestPlanInput", &OF_PLAN, &[]),
        ] {
            let schema = &document["components"]["schemas"][input]["properties"];
            let written: BTreeSet<&str> =
                schema.as_object().unwrap().keys().map(String::as_str).collect();
            let moved: BTreeSet<&str> = fields.iter().chain(apart).copied().collect();
            assert_eq!(moved, written, "fields of {input}");
        }
    }
}
