//! The interface as an OpenAPI document, and the pages that show it.

mod examples;
mod forms;
mod meanings;
mod problems;
mod rules;
mod versions;

use axum::{Router, routing::get};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value};
use utoipa::{
    OpenApi,
    openapi::security::{ApiKey, ApiKeyValue, SecurityScheme},
};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::{problem, routes};

/// Where the page has its document from.
const PAGE: &str = "/docs/openapi.json";

/// How clients show who they are.
const TOKEN: &str = "Token";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Assay",
        description = "Manages software tests, their executions and their results.\n\n\
            Lists are answered whole, or a page at a time with `limit` and `cursor`. A field that \
            an operation does not take is ignored. In an update a field that is absent stays as \
            it is, and `null` clears it. Send the `DataVersion` of what you saw, in the body or \
            as `If-Match`, to change nothing else.\n\n\
            Every answer has an `X-Request-Id`, by which it is found in the logs, and says in \
            `RateLimit` how many requests are left.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "Where this document came from")),
    security(("Token" = [])),
    tags(
        (name = "Tokens", description = "How a user proves who they are"),
        (name = "API tokens", description = "How a machine proves who it works for"),
        (name = "Customers", description = "Who projects and users belong to"),
        (name = "User groups", description = "Users with the same permissions"),
        (name = "Users", description = "Accounts as a customer sees them"),
        (name = "Audit", description = "Who did what, when, and from where"),
        (name = "Projects", description = "What all other records belong to"),
        (name = "Favorites", description = "What a user wants to have at hand"),
        (name = "Test cases", description = "What is tested"),
        (name = "Test plans", description = "How a test case is executed, in numbered revisions"),
        (name = "Test sets", description = "Test cases that are executed together"),
        (name = "Subjects", description = "The software under test"),
        (name = "Environments", description = "Where the software is tested"),
        (name = "Executions", description = "Runs of a test set, from their start to their end"),
        (name = "Results", description = "What test tools report"),
        (name = "Automation", description = "How engines fetch work and report what came of it"),
        (name = "Test reports", description = "What came of one test case in one execution"),
        (name = "Notifications", description = "A record of what happened"),
        (name = "Webhooks", description = "Other systems that are sent notifications"),
    ),
    components(schemas(problem::Document)),
)]
struct Outline;

/// The interface as an OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = Outline::openapi();
    document.merge(routes::all().into_openapi());
    let token = ApiKeyValue::with_description(
        "Authentication",
        "The token, alone or as `Bearer` and the token; `Authorization` is understood as well.",
    );
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(TOKEN, SecurityScheme::ApiKey(ApiKey::Header(token)));
    rules::apply(&mut document);
    meanings::tell(&mut document);
    examples::show(&mut document);
    document
}

/// `/api/openapi.json`, and `/docs`, which loads nothing from elsewhere.
pub(crate) fn documentation<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let document = serde_json::to_value(openapi()).expect("the document is JSON");
    let text = Bytes::from(document.to_string());
    let pages = SwaggerUi::new("/docs").external_url_unchecked(PAGE, to_try_out(document));
    let pages = pages.config(Config::default().validator_url("none").try_it_out_enabled(true));
    let json = [(CONTENT_TYPE, "application/json")];
    Router::from(pages).route("/api/openapi.json", get(async move || (json, text)))
}

/// The document as the page has it: filters are empty there, instead of filled in with examples.
fn to_try_out(mut document: Value) -> Value {
    let paths = document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut);
    let operations = paths.filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    for operation in operations {
        for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
            if parameter["in"] == "query" && parameter["required"] != true {
                parameter.as_object_mut().and_then(|parameter| parameter.remove("example"));
            }
        }
    }
    document
}
