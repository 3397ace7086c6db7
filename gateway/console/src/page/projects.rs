//! `/`: the projects of the customer.

use axum::{Router, extract::Query, response::IntoResponse, routing::get};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::{
    paged::{Paged, unless_empty},
    upload, usage,
};
use crate::{
    api::Console,
    failure::Failure,
    layout::Page,
    record::Project,
    session::Session,
    text::{beginning, clean, plain},
};

const PAGE: u32 = 60;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/", get(page))
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct Filter {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    q: Option<String>,
}

async fn page(
    Session { api, user }: Session,
    Query(query): Query<Paged<Filter>>,
) -> Result<impl IntoResponse, Failure> {
    let projects = api.list::<Project>("/api/projects", &query.listed(PAGE)).await?;
    let is_searched = query.filter.q.is_some() || query.cursor.is_some();
    let body = html! {
        div.head {
            h1 { "Projects" }
            a.button href="/engines" { "Engines" }
            @if usage::may_read(&user) { a.button href="/usage" { "Usage" } }
            @if is_searched || projects.items.len() > 5 { (search(&query.filter)) }
        }
        @if projects.items.is_empty() && query.cursor.is_some() { (query.nothing("")) }
        @else if projects.items.is_empty() && is_searched {
            p.empty { "No project has this text in its name. " a href="/" { "Show all projects" } }
        } @else if projects.items.is_empty() {
            (first_steps())
        }
        ul.cards { @for project in &projects.items { (card(project)) } }
        (query.pager("/", projects.next.as_deref()))
    };
    let title = "Projects".to_owned();
    Ok(Page { user: &user, title, trail: Vec::new(), body }.into_response())
}

fn search(filter: &Filter) -> Markup {
    html! {
        form.search role="search" {
            input type="search" name="q" aria-label="Search projects" placeholder="Search projects"
                value=(clean(filter.q.as_deref().unwrap_or_default()));
            button { "Search" }
        }
    }
}

fn card(project: &Project) -> Markup {
    html! {
        li.card.row {
            a href=(format!("/projects/{}", project.id)) { bdi { (plain(&project.name)) } }
            @if let Some(description) = &project.description { p { (plain(&beginning(description))) } }
        }
    }
}

/// Explains how the first project is created.
fn first_steps() -> Markup {
    html! {
        section.empty {
            h2 { "No projects yet" }
            p {
                "A project appears here as soon as a test run is uploaded. Create an "
                a href="/account" { "API token" } ", then run this where your test reports are:"
            }
            (upload::by_names("shop", "nightly"))
        }
    }
}
