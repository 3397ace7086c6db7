//! What the OpenAPI document calls required is just what a request cannot do without.

use assay_testkit::Answer;
use serde_json::{Map, Value};

use crate::{
    examples::{Trial, in_order},
    matrix::operation::{DOCUMENT, Operation},
};

/// What is needed because of the value that another field has: a web page has an address.
const DEPENDENT: [&str; 1] = ["Uri"];

/// The example of a JSON body that is one record, and the names of the fields that it needs.
fn body(operation: &Operation) -> Option<(Map<String, Value>, Vec<String>)> {
    let content = &operation.said["requestBody"]["content"]["application/json"];
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

impl Trial {
    async fn answer(&self, operation: &Operation, body: &Map<String, Value>) -> Answer {
        self.with_body(operation, "application/json", &body.clone().into()).await
    }
}

fn told(answer: &Answer) -> String {
    format!("{} {}", answer.status, answer.json()["detail"])
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_required_is_all_that_is_needed() {
    let trial = Trial::new().await;
    let (mut fields, mut found) = (0, Vec::new());
    for operation in in_order() {
        let Some((mut example, required)) = body(&operation) else { continue };
        for field in &required {
            fields += 1;
            let value = example.remove(field).unwrap();
            let answer = trial.answer(&operation, &example).await;
            if answer.status != 422 || !answer.to_string().contains(field.as_str()) {
                found.push(format!("{} without {field}: {}", operation.name, told(&answer)));
            }
            example.insert(field.clone(), value);
        }
        let is_needed = |field: &String| required.contains(field);
        example.retain(|field, _| is_needed(field) || DEPENDENT.contains(&field.as_str()));
        let answer = trial.answer(&operation, &example).await;
        // Something else may be in the way: what was made before, or that nobody proves who they are.
        if [400, 422].contains(&answer.status.as_u16()) {
            let told = told(&answer);
            found.push(format!("{} with {required:?} alone: {told}", operation.name));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(fields > 20, "{fields}");
    trial.world.stop().await;
}
