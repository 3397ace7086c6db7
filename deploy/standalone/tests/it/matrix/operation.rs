//! The operations of the OpenAPI document.

use std::{collections::BTreeMap, sync::LazyLock};

use reqwest::Method;
use serde_json::{Value, json};

use crate::world::in_days;

pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::to_value(assay_gateway::openapi()).unwrap());

/// Requirement for calling an operation.
#[derive(Debug, PartialEq)]
pub(crate) enum Needs {
    Nothing,
    Token,
    /// One permission of the first list, and all of the second.
    Permissions(Vec<String>, Vec<String>),
}

/// One operation.
pub(crate) struct Operation {
    /// The operation id; the one of the long path for a short one.
    pub(crate) name: String,
    pub(crate) method: Method,
    /// The path with parameters in braces.
    path: String,
    pub(crate) needs: Needs,
    /// The operation in the document.
    pub(crate) definition: &'static Value,
    /// The names of its query parameters.
    pub(crate) query: Vec<String>,
    /// The media type and the schema of its body.
    body: Option<(String, Value)>,
}

/// All operations, deletions last.
pub(crate) fn operations() -> Vec<Operation> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| Operation::read(method, path, operation))
    });
    let (delete, keep): (Vec<_>, Vec<_>) =
        all.partition(|operation: &Operation| operation.method == Method::DELETE);
    keep.into_iter().chain(delete).collect()
}

impl Operation {
    fn read(method: &str, path: &str, operation: &'static Value) -> Self {
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let query = parameters.filter(|parameter| parameter["in"] == "query");
        let body = operation["requestBody"]["content"].as_object().map(|content| {
            let (media_type, json) = content
                .get_key_value("application/json")
                .unwrap_or_else(|| content.iter().next().expect("a body has a media type"));
            (media_type.clone(), json["schema"].clone())
        });
        Self {
            name: operation["operationId"].as_str().unwrap().trim_end_matches("_by_id").to_owned(),
            method: method.to_uppercase().parse().unwrap(),
            path: path.to_owned(),
            needs: needs(operation["description"].as_str().unwrap()),
            definition: operation,
            query: query.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect(),
            body,
        }
    }

    /// The names of the path parameters.
    pub(crate) fn path_parameters(&self) -> Vec<&str> {
        let segments = self.path.split('/');
        segments.filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}')).collect()
    }

    /// The path with values for its parameters.
    pub(crate) fn path(&self, fill: impl Fn(usize, &str) -> String) -> String {
        let mut index = 0;
        let segments = self.path.split('/').map(|segment| {
            let Some(name) = segment.strip_prefix('{').and_then(|name| name.strip_suffix('}'))
            else {
                return segment.to_owned();
            };
            index += 1;
            // Only one of the executions has the report and its review.
            let of_report =
                self.path.contains("{testReportId}") || self.path.contains("{reviewId}");
            let of_report = name == "executionId" && of_report;
            fill(index - 1, if of_report { "completedExecutionId" } else { name })
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// The media type of the body, if there is one.
    pub(crate) fn media_type(&self) -> Option<&str> {
        self.body.as_ref().map(|(media_type, _)| media_type.as_str())
    }

    /// The names of the headers that the operation requires, with their documented examples. A new upload needs its
    /// size, or that it comes later.
    pub(crate) fn required_headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let parameters = self.definition["parameters"].as_array().into_iter().flatten();
        let is_new_upload = self.definition["operationId"] == "create_upload";
        let is_needed = move |parameter: &&Value| {
            let is_size = is_new_upload && parameter["name"] == "Upload-Length";
            parameter["in"] == "header" && (parameter["required"] == true || is_size)
        };
        let required = parameters.filter(is_needed);
        required.map(|parameter| {
            let example = &parameter["example"];
            let text = example.as_str().map_or_else(|| example.to_string(), str::to_owned);
            (parameter["name"].as_str().unwrap(), text)
        })
    }

    /// The required fields of the documented example of the body; none without a body.
    fn required_fields(&self) -> Value {
        let content = &self.definition["requestBody"]["content"]["application/json"];
        let Some(schema) = content["schema"]["$ref"].as_str() else { return json!({}) };
        let name = schema.rsplit('/').next().unwrap_or_default();
        let required = DOCUMENT["components"]["schemas"][name]["required"].as_array();
        let names = required.into_iter().flatten().filter_map(Value::as_str);
        names.map(|name| (name.to_owned(), content["example"][name].clone())).collect()
    }

    /// JSON pointers to ids in the body, with the kind of the record.
    pub(crate) fn references(&self) -> BTreeMap<String, &'static str> {
        let mut found = BTreeMap::new();
        if let Some((_, schema)) = &self.body {
            self.collect(schema, String::new(), &mut found);
        }
        found
    }

    fn collect(&self, schema: &Value, at: String, found: &mut BTreeMap<String, &'static str>) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap();
            // Limits recursive schemas.
            if at.split('/').count() < 8 {
                self.collect(&DOCUMENT["components"]["schemas"][name], at, found);
            }
            return;
        }
        for choice in ["oneOf", "anyOf", "allOf"] {
            for schema in schema[choice].as_array().into_iter().flatten() {
                self.collect(schema, at.clone(), found);
            }
        }
        if schema["items"].is_object() {
            self.collect(&schema["items"], format!("{at}/0"), found);
        }
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let at = format!("{at}/{name}");
            if let Some(kind) = self.kind(name, &at, schema) {
                found.insert(at.clone(), kind);
            }
            self.collect(schema, at, found);
        }
    }

    /// The kind of record that a field refers to, if any. Panics for an unknown reference, so that
    /// new fields are tested, too.
    fn kind(&self, name: &str, at: &str, schema: &Value) -> Option<&'static str> {
        let kind = match name {
            // The lease determines the test case.
            "TestCaseId" if self.name == "report_instances" => return None,
            // The review compares it with the selected test reports, and ignores others.
            "Id" if at.starts_with("/Seen/") => return None,
            // It belongs to a value of the pool itself.
            "Id" if at.starts_with("/Values/") => return None,
            "SubjectId" | "SelectedSubjectId" | "ContainedSubject" => "subjectId",
            "BaseSubjectId" => "baseSubjectId",
            "EnvironmentId" | "SelectedEnvironmentId" => "environmentId",
            // The plan was executed, so its files cannot change; an import keeps ids of other installations.
            "InputFileId"
            | "SupportingFilesId"
            | "AutomationSupportingFilesId"
            | "AutomatedTestContainerId"
                if ["update_test_plan", "import_test_cases"].contains(&self.name.as_str()) =>
            {
                return None;
            }
            "SoftwareFileId"
            | "InstallationFileId"
            | "InstructionFileId"
            | "FrameworkFileId"
            | "ImageFileId"
            | "InputFileId"
            | "SupportingFilesId"
            | "AutomationSupportingFilesId"
            | "AutomatedTestContainerId" => "fileId",
            "FileProjectId" => "projectId",
            "CustomerId" => "customerId",
            "ForeignId" if self.path.ends_with("/project") => "projectId",
            "ForeignId" if self.path.ends_with("/testset") => "testSetId",
            "TestCaseId" | "ForeignId" => "testCaseId",
            "Id" if at.contains("UserGroup/") => "userGroupId",
            "Id" if at.contains("TestCases/") || self.path.ends_with("/testcases") => "testCaseId",
            _ if schema["format"] == "uuid" => panic!("{}: unknown reference {at}", self.name),
            _ => return None,
        };
        Some(kind)
    }
}

/// Parses the last line of the description.
fn needs(description: &str) -> Needs {
    let last = description.lines().last().unwrap();
    match last.strip_prefix("Needs the permission ").and_then(|rest| rest.strip_suffix('.')) {
        Some(names) => {
            let name = |name: &str| name.trim_matches('`').to_owned();
            let mut all_of = names.split(" and ");
            let one_of = all_of.next().unwrap_or_default().split(" or ");
            Needs::Permissions(one_of.map(name).collect(), all_of.map(name).collect())
        }
        None if last == "Needs a token." => Needs::Token,
        None if last == "Needs no token." => Needs::Nothing,
        None => panic!("the description names no permission: {description}"),
    }
}

/// A valid body for an operation with ids from `own`. Operations that are not listed create a record
/// from the required fields of their example, or accept an empty object.
pub(crate) fn body(operation: &Operation, own: impl Fn(&str) -> String) -> Value {
    let result = || json!({"InstanceNr": 1, "Result": "Passed", "DurationInSec": 1, "Steps": []});
    match operation.name.as_str() {
        "create_subject" => json!({
            "Name": "New", "Identifier": "1", "SubjectType": "Webpage", "Uri": "https://new.example/",
        }),
        "create_user_group" => json!({"Name": "New", "UsagePermission": "UserManagement"}),
        "create_api_token" => json!({"Name": "New", "UsagePermission": "Read"}),
        "create_user" => json!({
            "DisplayName": "New", "Email": "new@example.org", "UserGroup": {"Id": own("userGroupId")},
        }),
        "create_webhook" => {
            json!({"Url": "https://new.example/", "Events": ["Client.Odd.Created"]})
        }
        "create_known_failure" => json!({
            // A random one is a UUID.
            "Fingerprint": own("fingerprint").replace('-', ""), "TestCaseId": own("testCaseId"),
            "MutedUntil": in_days(30),
        }),
        "create_cause_rule" | "preview_cause_rule" => json!({"Pattern": "on shard [a-z]+"}),
        "create_pool" => {
            json!({"Name": "New", "Values": [{"Contents": [{"Content": "ada", "IsSecured": true}]}]})
        }
        "start_execution" => json!({"Mode": "External"}),
        "lease_schedules" => json!({"TargetGroup": "none", "MaxSchedules": 1}),
        "report_results" => {
            let mut result = result();
            result["TestCaseId"] = own("testCaseId").into();
            json!([result])
        }
        "report_instances" => json!([result()]),
        "import_test_cases" => json!([{"Name": "Imported", "Description": ""}]),
        "replace_automation_steps" => json!([{"TestInput": "Press", "ExpectedResult": "A click"}]),
        "update_test_report" => json!({"Status": "Accepted"}),
        name if name.starts_with("include_") || name.starts_with("exclude_") => {
            json!([{"Id": own("testCaseId")}])
        }
        name if name.starts_with("add_favorite") => {
            let kind = operation.references().into_values().next().unwrap();
            json!({"ForeignId": own(kind)})
        }
        // Customers stay as they are, since operators create them.
        "create_customer" => json!({}),
        name if name.starts_with("create_") => operation.required_fields(),
        _ => json!({}),
    }
}
