//! Required fields of the OpenAPI document, compared with the validation of requests.

use assay_testkit::Answer;
use serde_json::{Map, Value};

use crate::{
    examples::{Examples, in_valid_order},
    installation::Installation,
    matrix::operation::{DOCUMENT, Operation},
};

/// Fields that are required depending on others: a web page needs a URI, a known failure a test case
/// or all of them, and a review of several reports a selection.
const DEPENDENT: [&str; 4] = ["Uri", "TestCaseId", "Fingerprint", "Pattern"];

/// The example of a JSON body with one record, and the names of its required fields.
fn body(operation: &Operation) -> Option<(Map<String, Value>, Vec<String>)> {
    let content = &operation.definition["requestBody"]["content"]["application/json"];
    let name = content["schema"]["$ref"].as_str()?.rsplit('/').next()?;
    let schema = &DOCUMENT["components"]["schemas"][name];
    schema.get("properties")?;
    let required = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|field| field.as_str().unwrap().to_owned());
    Some((content["example"].as_object()?.clone(), required.collect()))
}

impl Examples {
    async fn answer(&self, operation: &Operation, body: &Map<String, Value>) -> Answer {
        self.with_body(operation, "application/json", &body.clone().into()).await
    }
}

fn summary(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.json()["detail"])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_required_fields_are_exactly_those_that_requests_need() {
    let examples = Examples::new(&Installation::shared().await).await;
    let (mut fields, mut found) = (0, Vec::new());
    for operation in in_valid_order() {
        let Some((mut example, required)) = body(&operation) else { continue };
        for field in &required {
            fields += 1;
            let value = example.remove(field).unwrap();
            let answer = examples.answer(&operation, &example).await;
            if answer.status != 422 || !answer.to_string().contains(field.as_str()) {
                found.push(format!("{} without {field}: {}", operation.name, summary(&answer)));
            }
            example.insert(field.clone(), value);
        }
        let is_needed = |field: &String| required.contains(field);
        example.retain(|field, _| is_needed(field) || DEPENDENT.contains(&field.as_str()));
        let answer = examples.answer(&operation, &example).await;
        // Other errors are possible: a conflict with a created record, or a missing token.
        if [400, 422].contains(&answer.status.as_u16()) {
            let summary = summary(&answer);
            found.push(format!("{} with {required:?} alone: {summary}", operation.name));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(fields > 20, "{fields}");
}
