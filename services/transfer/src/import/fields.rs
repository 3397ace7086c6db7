//! The fields of records that clients write.

use serde_json::{Map, Value};

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
pub(super) const OF_ENVIRONMENT: [&str; 8] = [
    "Name",
    "ImageFileId",
    "ImageFileSize",
    "ModificationAllowed",
    "TargetGroup",
    "FileProjectId",
    "Username",
    "Password",
];
pub(super) const OF_SET: [&str; 7] =
    ["Name", "Description", "Priority", "Tags", "StopOnFailure", "TimeOut", "Gate"];
pub(super) const OF_PLAN: [&str; 11] = [
    "Instances",
    "MinimumDurationInMin",
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
