//! Where examples are shown: at fields, parameters, bodies and headers.

use std::collections::BTreeMap;

use serde_json::Value;
use utoipa::openapi::{
    Content, OpenApi, RefOr, Response, Schema,
    path::{Operation, Parameter, ParameterBuilder},
};

use super::{Examples, named, to_json};
use crate::openapi::rules::operations;

/// Gives all that has none an example.
pub(in crate::openapi) fn show(document: &mut OpenApi) {
    let examples = Examples::of(document);
    let components = document.components.get_or_insert_default();
    for (name, schema) in &mut components.schemas {
        examples.show_fields(name, schema);
    }
    for (path, item) in &mut document.paths.paths {
        for (_, operation) in operations(item) {
            examples.show(path, operation);
        }
    }
}

impl Examples {
    fn show_fields(&self, name: &str, schema: &mut RefOr<Schema>) {
        let RefOr::T(Schema::Object(schema)) = schema else { return };
        let example = self.record(name, name);
        for (field, schema) in &mut schema.properties {
            let RefOr::T(Schema::Object(schema)) = schema else { continue };
            schema.examples.extend(example.get(field).filter(|value| !value.is_null()).cloned());
        }
    }

    fn show(&self, path: &str, operation: &mut Operation) {
        let place = path.rsplit('/').next().unwrap_or_default();
        for parameter in operation.parameters.iter_mut().flatten() {
            if let RefOr::T(parameter) = parameter {
                *parameter = self.show_parameter(parameter);
            }
        }
        if let Some(RefOr::T(body)) = &mut operation.request_body {
            body.description = body.description.take().or_else(|| self.meaning(&body.content));
            self.show_content(&mut body.content, place);
        }
        for response in operation.responses.responses.values_mut() {
            if let RefOr::T(response) = response {
                self.show_content(&mut response.content, place);
                self.show_headers(path, response);
            }
        }
    }

    fn show_parameter(&self, parameter: &Parameter) -> Parameter {
        let shown = to_json(parameter);
        let example = shown.get("example").cloned().or_else(|| match parameter.name.as_str() {
            "If-Match" | "If-None-Match" => self.tag(),
            name => self.value(&shown["schema"], name),
        });
        ParameterBuilder::from(parameter.clone()).example(example).build()
    }

    fn show_content<'a>(
        &self,
        content: impl IntoIterator<Item = (&'a String, &'a mut RefOr<Content>)>,
        place: &str,
    ) {
        for (media_type, content) in content {
            let RefOr::T(content) = content else { continue };
            // Of a line or an event, this is what is in it.
            let is_told = media_type.ends_with("json") || media_type == "text/event-stream";
            if content.example.is_none() && is_told {
                content.example = self.value(&to_json(&content.schema), place);
            }
        }
    }

    fn show_headers(&self, path: &str, response: &mut Response) {
        let answered = response.content.get("application/json").map(to_json).unwrap_or_default();
        let location = || self.location(named(&answered["schema"])?, path);
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

    /// What the message is that a body consists of.
    fn meaning(&self, content: &BTreeMap<String, RefOr<Content>>) -> Option<String> {
        let content = to_json(content.get("application/json")?);
        let schema = &content["schema"];
        let name = named(schema).or_else(|| named(&schema["oneOf"][0]))?;
        Some(self.schemas[name]["description"].as_str()?.to_owned())
    }
}
