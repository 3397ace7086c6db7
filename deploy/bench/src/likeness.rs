//! The check that all systems answer with the same JSON.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::system::System;

/// Fails if the responses of two systems have different fields.
pub(crate) async fn check(systems: &[System]) -> Result<()> {
    let mut first = None;
    for system in systems {
        let fields = fields_of(system).await?;
        let expected = first.get_or_insert_with(|| fields.clone());
        let title = system.shape.title();
        ensure!(fields == *expected, "{title} answers with {fields}\ninstead of {expected}");
    }
    Ok(())
}

/// Returns the fields of a test case and of a list.
async fn fields_of(system: &System) -> Result<Value> {
    let (client, project) = (system.client(), &system.fixture.project);
    let case = client.get(&format!("{project}/testcases/{}", system.fixture.cases[0])).await?;
    let list = client.get(&format!("{project}/testcases?limit=2")).await?;
    Ok(Value::Array(vec![fields(case), fields(list)]))
}

/// Returns a value without texts and numbers, and of an array the first element.
fn fields(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            object.into_iter().map(|(name, value)| (name, fields(value))).collect()
        }
        Value::Array(array) => array.into_iter().take(1).map(fields).collect(),
        _ => Value::Null,
    }
}
