//! Examples of the OpenAPI document, sent to a running Assay.

use std::collections::BTreeMap;

use assay_testkit::{Answer, Api};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::{
    customer::unique,
    installation::Installation,
    matrix::operation::{DOCUMENT, Operation, operations},
    tenant::Tenant,
    world::{World, in_days},
};

/// Operations that end a record that others need.
const LATE: [&str; 3] = ["complete_lease", "complete_execution", "update_execution"];

/// Operations that need a token from a mail or a signed link, or end the session; other tests call
/// them.
const EXCLUDED: [&str; 7] = [
    "reset_password",
    "accept_invitation",
    "accept_membership",
    "logout",
    "download_artifact",
    // It needs a lease of a test with a file.
    "download_leased_file",
    // It needs a month.
    "get_statement",
];

/// A customer with records created from examples.
pub(crate) struct Examples {
    assay: Installation,
    tenant: Tenant,
    /// Ids of created records by the names of path parameters.
    created: BTreeMap<String, String>,
    /// Names of path parameters by the ids and fingerprints in the examples.
    shown: BTreeMap<String, String>,
}

impl Examples {
    pub(crate) async fn new(assay: &Installation) -> Self {
        let tenant = Tenant::new(assay, &unique("shops")).await;
        let hook = format!("/api/webhooks/{}", tenant.id("webhookId"));
        tenant.api.put(&hook, json!({"Archived": false})).await.ok();
        let parameters = operations()
            .into_iter()
            .flat_map(|operation| operation.definition["parameters"].as_array().unwrap().iter());
        let is_id = |p: &Value| p["schema"]["format"] == "uuid" || p["name"] == "fingerprint";
        let ids = parameters.filter(|p| p["in"] == "path" && is_id(p));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let shown = ids.map(|id| (text(&id["example"]), text(&id["name"]))).collect();
        Self { assay: assay.clone(), tenant, created: BTreeMap::new(), shown }
    }

    fn id(&self, name: &str) -> String {
        self.created.get(name).cloned().unwrap_or_else(|| self.tenant.id(name).to_owned())
    }

    /// The path of an operation; the path of a report has the plan of the report.
    fn path(&self, operation: &Operation) -> String {
        let of_report = operation.path_parameters().contains(&"testReportId");
        let own = |name: &str| match operation.name.as_str() {
            // Reports and reporters belong to an open execution, if one was created.
            "add_report" | "complete_execution" => {
                self.created.get(&open(name)).cloned().unwrap_or_else(|| self.id(name))
            }
            _ if of_report => self.tenant.id(name).to_owned(),
            _ => self.id(name),
        };
        operation.path(|_, name| own(name))
    }

    /// The example with ids of existing records.
    fn with_own_ids(&self, example: &Value) -> Value {
        let own = |name: &String| match name.as_str() {
            // Users belong to the customer that existed before.
            "customerId" => self.tenant.id(name).to_owned(),
            name => self.id(name),
        };
        match example {
            Value::String(text) => self.shown.get(text).map_or(text.clone(), own).into(),
            Value::Array(items) => items.iter().map(|item| self.with_own_ids(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| match name.as_str() {
                    // Known failures and states of test cases end in the future, unlike their examples.
                    "MutedUntil" | "Until" => (name.clone(), in_days(30).into()),
                    // Fields for files have ids of a noun of their own.
                    _ if name.ends_with("FileId") || name.ends_with("FilesId") => {
                        (name.clone(), self.id("fileId").into())
                    }
                    _ => (name.clone(), self.with_own_ids(value)),
                });
                fields.collect()
            }
            other => other.clone(),
        }
    }

    /// The client of an operation: the operator's administrator manages customers.
    fn api(&self, operation: &Operation) -> &Api {
        let for_operators =
            operation.name.contains("customer") && !operation.name.contains("current");
        if for_operators { &self.assay.api } else { &self.tenant.api }
    }

    fn request(&self, operation: &Operation) -> RequestBuilder {
        let request = self.api(operation).request(operation.method.clone(), &self.path(operation));
        let headers = operation.required_headers();
        headers.fold(request, |request, (name, example)| request.header(name, example))
    }

    /// Sends the request with a body of this media type.
    pub(crate) async fn with_body(
        &self,
        operation: &Operation,
        media_type: &str,
        example: &Value,
    ) -> Answer {
        let request = self.request(operation);
        let mut example = self.with_own_ids(example);
        // A GET with a body is an update, too.
        let updates = [Method::PUT, Method::GET].contains(&operation.method);
        if updates && example.get("DataVersion").is_some() {
            example["DataVersion"] = self.version(operation).await;
        }
        // The example of a new pool has the name.
        if operation.name == "update_pool" {
            example["Name"] = "Another one".into();
        }
        let (media_type, text) = match (media_type, &example) {
            ("multipart/form-data", _) => {
                let file = example["file"].as_str().or(example["file"][0].as_str());
                ("multipart/form-data; boundary=-", form(file.unwrap()))
            }
            (_, Value::String(text)) => (media_type, text.clone()),
            _ => (media_type, example.to_string()),
        };
        Answer::of(request.header("Content-Type", media_type).body(text)).await
    }

    /// The current version of the record; null if it cannot be read.
    async fn version(&self, operation: &Operation) -> Value {
        let answer = self.api(operation).get(&self.path(operation)).await;
        if answer.status == 200 { answer.json()["DataVersion"].clone() } else { Value::Null }
    }

    /// Stores the id of a created record if paths can have it.
    fn remember(&mut self, operation: &Operation, answer: &Answer) {
        let parameter = match operation.name.as_str() {
            "open_execution" => {
                let execution = answer.json();
                for (parameter, field) in [("projectId", "ProjectId"), ("executionId", "Id")] {
                    let id = execution[field].as_str().unwrap().to_owned();
                    self.created.insert(open(parameter), id);
                }
                return;
            }
            "create_user" => "userId",
            "create_user_group" => "userGroupId",
            "create_customer" => "customerId",
            "create_test_plan" => "testPlanId",
            _ => return,
        };
        let id = answer.json()["Id"].as_str().unwrap().to_owned();
        self.created.insert(parameter.to_owned(), id);
    }
}

/// The name of a path parameter of an open execution, among the created records.
fn open(parameter: &str) -> String {
    format!("open {parameter}")
}

/// A form with one file.
fn form(file: &str) -> String {
    let disposition = "Content-Disposition: form-data; name=\"file\"; filename=\"junit.xml\"";
    format!("---\r\n{disposition}\r\n\r\n{file}\r\n-----\r\n")
}

/// The differences between an answer and the document.
fn problems(operation: &Operation, answer: &Answer) -> Vec<String> {
    let status = answer.status.as_str();
    let response = &operation.definition["responses"][status];
    if !answer.status.is_success() || response.is_null() {
        return vec![format!("{}: {answer}", operation.name)];
    }
    let mut found = Vec::new();
    if let Some(content) = response["content"].get("application/json") {
        let mut schema = content["schema"].clone();
        schema["components"] = DOCUMENT["components"].clone();
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let errors =
            validator.iter_errors(&answer.json()).map(|e| e.to_string()).collect::<Vec<_>>();
        found.extend(errors.into_iter().map(|e| format!("{}: {e}", operation.name)));
    }
    for (name, header) in response["headers"].as_object().into_iter().flatten() {
        let Some(value) = answer.headers.get(name.as_str()) else {
            // The last page has no link.
            if name != "Link" {
                found.push(format!("{}: {name} is missing", operation.name));
            }
            continue;
        };
        let (shown, real) = (header["example"].as_str().unwrap(), value.to_str().unwrap());
        if name == "Location" && without_ids(shown) != without_ids(real) {
            found.push(format!("{}: {real} does not match {shown}", operation.name));
        }
    }
    found
}

fn without_ids(path: &str) -> String {
    let segments = path.split('/').map(|part| if part.len() == 36 { "…" } else { part });
    segments.collect::<Vec<_>>().join("/")
}

/// Operations in an order in which none removes a record that a later one needs.
pub(crate) fn in_valid_order() -> Vec<Operation> {
    let all = operations().into_iter();
    let all = all.filter(|operation| !EXCLUDED.contains(&operation.name.as_str()));
    let (late, early): (Vec<_>, Vec<_>) = all
        .filter(|o| o.method != Method::DELETE || o.media_type().is_some())
        .partition(|operation| LATE.contains(&operation.name.as_str()));
    early.into_iter().chain(late).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_of_bodies_are_accepted_and_answers_match_the_document() {
    // An example creates a customer with a fixed subdomain.
    let world = World::start().await;
    let mut examples = Examples::new(&world).await;
    let (mut sent, mut found) = (0, Vec::new());
    for operation in in_valid_order() {
        let content = operation.definition["requestBody"]["content"].as_object();
        for (media_type, content) in content.into_iter().flatten() {
            let answer = examples.with_body(&operation, media_type, &content["example"]).await;
            found.extend(problems(&operation, &answer));
            if answer.status == 201 {
                examples.remember(&operation, &answer);
            }
            sent += 1;
        }
        if content.is_none() && !operation.name.starts_with("watch_") {
            let answer = Answer::of(examples.request(&operation)).await;
            found.extend(problems(&operation, &answer));
            sent += 1;
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(sent > 100, "{sent}");
    world.stop().await;
}

/// Sends all parameters of an operation at once.
#[tokio::test(flavor = "multi_thread")]
async fn examples_of_parameters_are_accepted() {
    let examples = Examples::new(&Installation::shared().await).await;
    for operation in operations().iter().filter(|operation| operation.method == Method::GET) {
        if EXCLUDED.contains(&operation.name.as_str()) || operation.query.is_empty() {
            continue;
        }
        let parameters = operation.definition["parameters"].as_array().unwrap().iter();
        let mut query = form_urlencoded::Serializer::new(String::new());
        // A cursor is valid only for the list that returned it.
        let query_of =
            |parameter: &&Value| parameter["in"] == "query" && parameter["name"] != "cursor";
        for parameter in parameters.filter(query_of) {
            let value = examples.with_own_ids(&parameter["example"]);
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            query.append_pair(parameter["name"].as_str().unwrap(), &text);
        }
        let path = format!("{}?{}", examples.path(operation), query.finish());
        let request = examples.api(operation).request(Method::GET, &path);
        let status = request.send().await.unwrap().status();
        assert_eq!(status, 200, "{}: {path}", operation.name);
    }
}
