//! The OpenAPI document has a valid example for every request and answer.

use jsonschema::Validator;
use serde_json::{Value, json};

/// The document, and the problems found in it.
struct Checked {
    document: Value,
    problems: Vec<String>,
    examples: usize,
}

impl Checked {
    fn new() -> Self {
        let document = serde_json::to_value(assay_gateway::openapi()).unwrap();
        Self { document, problems: Vec::new(), examples: 0 }
    }

    /// Returns a validator for values of this schema.
    fn validator(&self, schema: &Value) -> Validator {
        let mut schema = schema.clone();
        if schema.to_string().contains("$ref") {
            schema["components"] = self.document["components"].clone();
        }
        jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
    }

    /// Checks that a parameter, header or media type has an example that matches its schema.
    fn check_example(&mut self, what: &str, part: &Value) {
        let Some(example) = part.get("example") else {
            return self.problems.push(format!("{what} has no example"));
        };
        self.examples += 1;
        let validator = self.validator(&part["schema"]);
        let errors = validator.iter_errors(example);
        self.problems.extend(errors.map(|e| format!("{what}: {}: {e}", e.instance_path())));
    }

    fn check_description(&mut self, what: &str, part: &Value) {
        if part["description"].as_str().is_none_or(str::is_empty) {
            self.problems.push(format!("{what} is not described"));
        }
    }

    fn content(&mut self, what: &str, part: &Value) {
        for (media_type, content) in part["content"].as_object().into_iter().flatten() {
            self.check_example(&format!("{what} as {media_type}"), content);
            if media_type == "text/event-stream" {
                self.check_data(&format!("{what}: the data"), content);
            }
        }
    }

    /// Checks that the data of an event is text, with JSON of the schema that is stated for it.
    fn check_data(&mut self, what: &str, content: &Value) {
        let data = &content["schema"]["properties"]["data"];
        assert_eq!(
            (&data["type"], &data["contentMediaType"]),
            (&json!("string"), &json!("application/json"))
        );
        let example: Value =
            serde_json::from_str(content["example"]["data"].as_str().unwrap()).unwrap();
        let part = json!({"schema": data["contentSchema"], "example": example});
        self.check_example(what, &part);
    }

    fn operation(&mut self, what: &str, operation: &Value) {
        for parameter in operation["parameters"].as_array().unwrap() {
            let what = format!("{what}: {}", parameter["name"]);
            self.check_description(&what, parameter);
            self.check_example(&what, parameter);
        }
        if let Some(body) = operation.get("requestBody") {
            let what = format!("{what}: the body");
            self.check_description(&what, body);
            self.content(&what, body);
        }
        for (status, response) in operation["responses"].as_object().unwrap() {
            if response.get("$ref").is_none() {
                self.response(&format!("{what}: {status}"), response);
            }
        }
    }

    fn response(&mut self, what: &str, response: &Value) {
        self.check_description(what, response);
        self.content(what, response);
        for (name, header) in response["headers"].as_object().into_iter().flatten() {
            let what = format!("{what}: {name}");
            self.check_description(&what, header);
            self.check_example(&what, header);
        }
    }

    fn all(mut self) -> Self {
        let document = self.document.clone();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                self.operation(&format!("{method} {path}"), operation);
            }
        }
        for (name, response) in document["components"]["responses"].as_object().unwrap() {
            self.response(name, response);
        }
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            self.check_description(name, schema);
            for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
                let is_described_itself = schema["$ref"].is_string() || schema["oneOf"].is_array();
                if !is_described_itself {
                    self.check_description(&format!("{name}: {field}"), schema);
                }
            }
        }
        self
    }
}

#[test]
fn every_request_and_answer_has_a_description_and_a_valid_example() {
    let checked = Checked::new().all();
    assert!(checked.problems.is_empty(), "{:#?}", checked.problems);
    assert!(checked.examples > 500, "{}", checked.examples);
}

/// Proves that the check can fail.
#[test]
fn missing_and_invalid_examples_are_found() {
    let mut checked = Checked::new();
    let create = "/paths/~1api~1projects/post";
    let get = "/paths/~1api~1projects~1{projectId}/get";
    let json = "content/application~1json";
    let change = |document: &mut Value, pointer: &str, value: Value| {
        *document.pointer_mut(pointer).unwrap() = value;
    };
    let document = &mut checked.document;
    change(document, &format!("{create}/requestBody/{json}/example"), json!({"Name": 1}));
    change(document, &format!("{create}/requestBody/description"), "".into());
    change(document, &format!("{get}/parameters/0"), json!({"name": "x", "description": "x"}));
    let field = format!("{get}/responses/200/{json}/example");
    document.pointer_mut(&field).unwrap().as_object_mut().unwrap().remove("DataVersion");
    let problems = checked.all().problems;
    assert_eq!(problems.len(), 4, "{problems:#?}");
}

/// The data of an event is not the event: a client reads the text of the data as JSON. A stream of notifications may
/// begin with a reset, and a log has no lease before an engine writes one.
#[test]
fn the_data_of_events_is_described_as_json_with_resets_and_logs_without_a_lease() {
    let checked = Checked::new();
    for path in [
        "/api/executions/{executionId}/reports/{testReportId}/log/stream",
        "/api/notifications/stream",
    ] {
        let answer = &checked.document["paths"][path]["get"]["responses"]["200"];
        let schema = &answer["content"]["text/event-stream"]["schema"];
        assert_eq!(schema["required"], json!(["data"]), "{path}");
        assert!(schema["properties"]["data"]["contentSchema"]["$ref"].is_string(), "{path}");
    }
    let reset = |reason: &str| json!({ "Reason": reason });
    let data = json!({"$ref": "#/components/schemas/NotificationEventData"});
    let data = checked.validator(&data);
    assert!(data.is_valid(&reset("UnknownLastEventId")) && !data.is_valid(&reset("Other")));
    let without_lease = json!({
        "LeaseId": null, "Engine": "", "Offset": 0, "NextOffset": 0, "Text": "", "IsRunning": false,
    });
    let schema = json!({"$ref": "#/components/schemas/LiveLog"});
    assert!(checked.validator(&schema).is_valid(&without_lease));
}

/// Examples of problems have the status under which they are listed.
#[test]
fn examples_of_problems_have_the_right_status() {
    let checked = Checked::new();
    let responses = checked.document["components"]["responses"].clone();
    let paths = checked.document["paths"].as_object().unwrap();
    let operations = paths.values().flat_map(|item| item.as_object().unwrap().values());
    for operation in operations {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let Some(name) = response["$ref"].as_str() else { continue };
            let response = &responses[name.rsplit('/').next().unwrap()];
            let example = &response["content"]["application/problem+json"]["example"];
            assert_eq!(example["status"].to_string(), *status, "{name}");
        }
    }
}
