//! The fields of records that clients write.

use std::collections::HashMap;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::text;

/// The mask of secrets.
const MASK: &str = "********";

pub(super) const OF_PROJECT: [&str; 7] = [
    "Name",
    "Description",
    "ReportTemplateId",
    "RetentionInDays",
    "DefaultBranch",
    "ServesMetrics",
    "TicketUrl",
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
const OF_FILES: [&str; 9] = [
    "SoftwareFileId",
    "InstallationFileId",
    "InstructionFileId",
    "FrameworkFileId",
    IMAGE,
    "InputFileId",
    "SupportingFilesId",
    "AutomationSupportingFilesId",
    "AutomatedTestContainerId",
];

/// The image of an environment, which may be a file of another project.
const IMAGE: &str = "ImageFileId";
const PROJECT_OF_IMAGE: &str = "FileProjectId";

/// Replaces the ids of files by those in the target.
pub(super) fn move_files(record: &mut Map<String, Value>, files: &HashMap<String, String>) {
    let project = text(record, PROJECT_OF_IMAGE);
    let is_elsewhere = !project.is_empty() && !is_id(project);
    for field in OF_FILES.into_iter().filter(|field| *field != IMAGE || !is_elsewhere) {
        if let Some(Value::String(id)) = record.get_mut(field) {
            *id = moved(id, files);
        }
    }
    if !is_elsewhere {
        // The default is the project of the environment, which has the file now.
        record.remove(PROJECT_OF_IMAGE);
    }
}

/// Returns what the text of a field for a file becomes. The id of a file that is not part of the export is
/// marked as that of another system.
pub(super) fn moved(text: &str, files: &HashMap<String, String>) -> String {
    if !is_id(text) {
        return text.to_owned();
    }
    // Records have ids as they were written, also in upper case.
    let moved = files.get(&text.to_ascii_lowercase());
    moved.cloned().unwrap_or_else(|| format!("not moved: {text}"))
}

/// Whether a text is the id of a file of Assay. Any other text names a file of another system.
fn is_id(text: &str) -> bool {
    text.len() == 36 && Uuid::try_parse(text).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    /// The interface document, which another test compares with the contracts.
    const DOCUMENT: &str = include_str!("../../../../docs/openapi.json");

    const OLD: &str = "019cade2-11c0-7e81-9ed2-4af6c6434ad2";
    const NEW: &str = "019cade2-11c0-7e81-9ed2-4af6c6434ad3";
    const OTHER: &str = "019cade2-11c0-7e81-9ed2-4af6c6434ad4";

    /// Returns a record after the file with the id `OLD` was moved.
    fn after(record: Value) -> Value {
        let files = HashMap::from([(OLD.to_owned(), NEW.to_owned())]);
        let Value::Object(mut record) = record else { unreachable!() };
        move_files(&mut record, &files);
        record.into()
    }

    #[test]
    fn ids_of_files_become_new_ones_and_others_are_marked() {
        let record = json!({
            "SoftwareFileId": OLD, "FrameworkFileId": OTHER, "InstructionFileId": "manual",
            "InputFileId": OLD, "AutomatedTestContainerId": OLD.to_uppercase(),
            "InstallationFileId": null, "Name": OLD,
        });
        let expected = json!({
            "SoftwareFileId": NEW, "FrameworkFileId": format!("not moved: {OTHER}"),
            "InstructionFileId": "manual", "InputFileId": NEW, "AutomatedTestContainerId": NEW,
            "InstallationFileId": null, "Name": OLD,
        });
        assert_eq!(after(record), expected);
    }

    #[test]
    fn an_image_moves_unless_it_is_in_another_system_or_project() {
        for (image, project, expected) in [
            (OLD, OTHER, json!({"ImageFileId": NEW})),
            (OTHER, OTHER, json!({"ImageFileId": format!("not moved: {OTHER}")})),
            ("a.img", OTHER, json!({"ImageFileId": "a.img"})),
            (OLD, "", json!({"ImageFileId": NEW})),
            (OLD, "vcenter", json!({"ImageFileId": OLD, "FileProjectId": "vcenter"})),
        ] {
            let record = json!({"ImageFileId": image, "FileProjectId": project});
            assert_eq!(after(record), expected, "{image} of {project}");
        }
    }

    #[test]
    fn every_field_for_a_file_is_replaced() {
        let inputs = OF_SUBJECT.iter().chain(&OF_ENVIRONMENT).chain(&OF_PLAN);
        let of_files = |name: &&&str| {
            name.ends_with("FileId") || name.ends_with("FilesId") || name.ends_with("ContainerId")
        };
        let named: BTreeSet<&str> = inputs.filter(of_files).copied().collect();
        assert_eq!(named, BTreeSet::from(OF_FILES));
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
