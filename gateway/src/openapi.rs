//! The OpenAPI document of the interface, and the pages that show it.

mod descriptions;
mod examples;
mod media;
mod problems;
mod rules;
mod texts;
mod versions;
mod vocabularies;

use std::sync::LazyLock;

use axum::{
    Router,
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use http::{
    HeaderValue,
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;
use utoipa::{
    OpenApi,
    openapi::security::{Http, HttpAuthScheme, SecurityScheme},
};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::{
    problem::{self, Problem},
    routes,
};

/// Allows files of this host only, and no frames. The page has styles and pictures in its code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; font-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// URL of the document that the page loads.
const PAGE: &str = "/docs/openapi.json";

/// Name of the security scheme.
const TOKEN: &str = "Token";

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Assay",
        description = "Manages software tests, their executions and their results.\n\n\
            Lists are returned whole, or one page at a time with `limit` and `cursor`. A body \
            may have the fields of the record as it was read, of which the writable ones count; other \
            fields are refused with 422. So is a query parameter that is probably a misspelt one. An \
            empty query parameter counts as absent, unless its smallest length is 1. In an update, an \
            absent field keeps its value and `null` clears it. Send the `DataVersion` that you read, \
            in the body or as `If-Match`, to make sure that nobody else has changed the record since.\n\n\
            Every response has an `X-Request-Id`, which also stands in the logs, and states in \
            `RateLimit` how many requests are left.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "/", description = "The server that returned this document")),
    security(("Token" = [])),
    tags(
        (name = "Tokens", description = "Authentication of users"),
        (name = "API tokens", description = "Authentication of machines"),
        (name = "Customers", description = "Owners of projects and users"),
        (name = "User groups", description = "Groups of users with the same permissions"),
        (name = "Users", description = "Members of a customer"),
        (name = "Audit", description = "Log of logins and changes"),
        (name = "Projects", description = "Containers of all test records"),
        (name = "Favorites", description = "Records that a user has marked"),
        (name = "Test cases", description = "Descriptions of single tests"),
        (name = "Test plans", description = "Instructions for test cases, in numbered revisions"),
        (name = "Test sets", description = "Test cases that are executed together"),
        (name = "Subjects", description = "The software under test"),
        (name = "Environments", description = "Environments in which subjects are tested"),
        (name = "Pools", description = "Values such as test accounts, each of which one test at a time may use"),
        (name = "Files", description = "Software, images and inputs of tests, which other records refer to"),
        (name = "Executions", description = "Runs of a test set, from start to end"),
        (name = "Results", description = "Results reported by test tools"),
        (name = "Known failures", description = "Causes of failures that are muted until a date"),
        (name = "Causes", description = "Rules of a project for the causes of its failures"),
        (name = "Monitors", description = "Rules that mute or skip test cases while they are flaky or slow"),
        (name = "Incidents", description = "Failures of many tests that are evidence about their environment"),
        (name = "Share links", description = "Secret links to one execution for readers without an account"),
        (name = "Automation", description = "Work for engines, and their results"),
        (name = "Test reports", description = "Results of one test case in one execution"),
        (name = "Notifications", description = "Records of changes and events"),
        (name = "Webhooks", description = "HTTP endpoints that receive notifications"),
    ),
    components(schemas(problem::Document)),
)]
struct Outline;

/// Builds the OpenAPI document of the interface.
///
/// # Panics
///
/// If a route does not name the contract method that it calls.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = Outline::openapi();
    document.merge(routes::all().into_openapi());
    let mut token = Http::new(HttpAuthScheme::Bearer);
    token.description = Some(
        "A token of `login` or an API token, as `Authorization: Bearer …`. The header `Authentication` \
         works as well, with or without `Bearer`."
            .to_owned(),
    );
    let components = document.components.get_or_insert_default();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(token));
    rules::apply(&mut document);
    descriptions::add(&mut document);
    examples::attach::attach_all(&mut document);
    document
}

/// The document as JSON.
struct Rendered {
    /// For clients.
    interface: Bytes,
    /// For the page.
    page: Bytes,
}

/// The document is rendered when somebody asks for it, as that takes megabytes.
static RENDERED: LazyLock<Rendered> = LazyLock::new(|| {
    let document = serde_json::to_value(openapi()).expect("the document is JSON");
    let interface = document.to_string().into();
    Rendered { interface, page: without_filter_examples(document).to_string().into() }
});

/// Serves `/api/openapi.json` and `/docs`, which loads nothing from other hosts.
pub(crate) fn documentation<S: Clone + Send + Sync + 'static>() -> Router<S> {
    // The groups are closed at first: browsers take seconds to draw more than 200 operations.
    let config = Config::new([PAGE]).validator_url("none").try_it_out_enabled(true);
    let config = config.doc_expansion("none");
    Router::from(SwaggerUi::new("/docs").config(config))
        .layer(map_response(async |mut response: Response| {
            let policy = HeaderValue::from_static(POLICY);
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
            response
        }))
        .route(PAGE, get(|| respond(|rendered| &rendered.page)))
        .route("/api/openapi.json", get(|| respond(|rendered| &rendered.interface)))
}

async fn respond(choose: fn(&Rendered) -> &Bytes) -> Result<impl IntoResponse, Problem> {
    let text = spawn_blocking(move || choose(&RENDERED).clone()).await;
    let text = text.map_err(|_| Problem::internal())?;
    Ok(([(CONTENT_TYPE, "application/json")], text))
}

/// Removes the examples of optional query parameters, which the page would fill in as filters.
fn without_filter_examples(mut document: Value) -> Value {
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
