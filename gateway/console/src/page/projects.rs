//! `/`: the projects of the customer.

use axum::{Router, extract::Query, response::IntoResponse, routing::get};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::{Listed, part, unless_empty, upload};
use crate::{
    Console,
    api::Project,
    failure::Failure,
    layout::Page,
    session::Session,
    text::{clean, plain},
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
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

async fn page(
    Session { api, user }: Session,
    Query(filter): Query<Filter>,
) -> Result<impl IntoResponse, Failure> {
    let query = Listed { limit: PAGE, filter: &filter };
    let projects = api.list::<Project>("/api/projects", &query).await?;
    let is_searched = filter.q.is_some() || filter.cursor.is_some();
    let first = filter.cursor.is_some().then(|| Filter { cursor: None, ..filter.clone() });
    let next = projects.next.map(|cursor| Filter { cursor: Some(cursor), ..filter.clone() });
    let body = html! {
        div.head {
            h1 { "Projects" }
            @if is_searched || projects.items.len() > 5 { (search(&filter)) }
        }
        @if projects.items.is_empty() && is_searched {
            p.empty { "No project has this text in its name. " a href="/" { "Show all projects" } }
        } @else if projects.items.is_empty() {
            (first_steps())
        }
        ul.cards { @for project in &projects.items { (card(project)) } }
        (part::pager("/", first.as_ref(), next.as_ref()))
    };
    let title = "Projects".to_owned();
    Ok(Page { user: &user, title, trail: Vec::new(), refresh: None, body }.into_response())
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
            @if let Some(description) = &project.description { p { (plain(description)) } }
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
