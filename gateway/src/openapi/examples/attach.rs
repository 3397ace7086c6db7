//! Attaches examples to fields, parameters, bodies and headers.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::{
    Content, OpenApi, RefOr, Response, Schema,
    path::{Operation, Parameter, ParameterBuilder},
};

use super::{Examples, referred, to_json};
use crate::operation::operations;

/// Attaches an example to everything that has none.
pub(in crate::openapi) fn attach_all(document: &mut OpenApi) {
    let examples = Examples::of(document);
    let components = document.components.get_or_insert_default();
    for (name, schema) in &mut components.schemas {
        examples.attach_to_fields(name, schema);
    }
    for (path, item) in &mut document.paths.paths {
        for (_, operation) in operations(item) {
            examples.attach(path, operation);
        }
    }
}

impl Examples {
    fn attach_to_fields(&self, name: &str, schema: &mut RefOr<Schema>) {
        let RefOr::T(Schema::Object(schema)) = schema else { return };
        let example = self.record(name, name);
        for (field, schema) in &mut schema.properties {
            let RefOr::T(Schema::Object(schema)) = schema else { continue };
            schema.examples.extend(example.get(field).filter(|value| !value.is_null()).cloned());
        }
    }

    fn attach(&self, path: &str, operation: &mut Operation) {
        let name = path.rsplit('/').next().unwrap_or_default();
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter {
                *parameter = self.with_example(parameter);
            }
        }
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            body.description =
                body.description.take().or_else(|| self.description_of(&body.content));
            self.attach_to_content(&mut body.content, name);
        }
        for response in operation.responses.responses.values_mut() {
            if let RefOr::T(response) = response {
                self.attach_to_content(&mut response.content, name);
                self.attach_to_headers(path, response);
            }
        }
    }

    fn with_example(&self, parameter: &Parameter) -> Parameter {
        let written = to_json(parameter);
        let example = written.get("example").cloned().or_else(|| match parameter.name.as_str() {
            "If-Match" | "If-None-Match" => self.tag(),
            name => self.value(&written["schema"], name),
        });
        ParameterBuilder::from(parameter.clone()).example(example).build()
    }

    fn attach_to_content<'a>(
        &self,
        content: impl IntoIterator<Item = (&'a String, &'a mut RefOr<Content>)>,
        name: &str,
    ) {
        for (media_type, content) in content {
            let RefOr::T(content) = content else { continue };
            // The example of a line is the JSON in it.
            if content.example.is_none() && media_type.ends_with("json") {
                content.example = self.value(&to_json(&content.schema), name);
            }
        }
    }

    fn attach_to_headers(&self, path: &str, response: &mut Response) {
        let json = response.content.get("application/json").map(to_json).unwrap_or_default();
        let location = || self.location(referred(&json["schema"])?, path);
        for (name, header) in &mut response.headers {
            let RefOr::T(header) = header else { continue };
            let example = match name.as_str() {
                "Location" => location().map(Value::String),
                "ETag" => self.tag(),
                "Content-Disposition" => Some("attachment; filename=\"testcases.json\"".into()),
                "Link" => {
                    let (path, cursor) = (self.path(path), self.id(path));
                    Some(format!("<{path}?limit=100&cursor={cursor}>; rel=\"next\"").into())
                }
                _ => None,
            };
            header.example = header.example.take().or(example);
        }
    }

    /// Returns the description of the message in a JSON body.
    fn description_of(&self, content: &BTreeMap<String, RefOr<Content>>) -> Option<String> {
        let content = to_json(content.get("application/json")?);
        let schema = &content["schema"];
        let name = referred(schema).or_else(|| referred(&schema["oneOf"][0]))?;
        Some(self.schemas[name]["description"].as_str()?.to_owned())
    }
}
