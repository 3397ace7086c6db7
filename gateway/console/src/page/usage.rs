//! `/usage`: the hours of execution of a customer by month, project, target group and test set, and what it owes
//! for a month.

mod month;
mod statement;
mod sums;

use axum::{
    Router,
    extract::Query,
    response::{IntoResponse, Response},
    routing::get,
};
use chrono::Utc;
use futures::try_join;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use self::{month::Month, sums::Times};
use super::{
    paged::unless_empty,
    part::{below_projects, select_field},
};
use crate::{
    api::{Api, Console, List, address},
    claims::Claims,
    failure::Failure,
    layout::Page,
    record::{Permission, Project},
    session::Session,
    text::counted,
};

/// Maximum number of projects that are offered, and whose names are shown.
const PROJECTS: u32 = 200;

const PAGE: &str = "/usage";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route(PAGE, get(page))
        .route("/usage/executiontimes", get(download))
        .route("/usage/statement", get(statement::download))
}

/// Returns whether a user may read hours of execution or statements.
pub(super) fn may_read(user: &Claims) -> bool {
    user.may(Permission::ExecutionTimes) || user.may(Permission::Invoicing)
}

/// The executions that count, as the interface names them.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    /// First month.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    /// Last month, and that of the statement.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
}

impl Filter {
    /// Returns the last month, and the first one, which is not later.
    fn months(&self, now: Month) -> (Month, Month) {
        let read = |month: &Option<String>| month.as_deref().and_then(Month::parse);
        let to = read(&self.to).unwrap_or(now);
        (read(&self.from).unwrap_or(to).min(to), to)
    }

    /// Returns the filter of the interface.
    fn of(&self, (from, to): (Month, Month)) -> Self {
        let (from, to) = (Some(from.to_string()), Some(to.to_string()));
        Self { from, to, project_id: self.project_id.clone() }
    }
}

async fn page(
    Session { api, user }: Session,
    Query(filter): Query<Filter>,
) -> Result<impl IntoResponse, Failure> {
    let now = this_month();
    let months = filter.months(now);
    let filter = filter.of(months);
    let (times, projects, statement) = try_join!(
        times(&api, &user, &filter),
        projects(&api, &user),
        statement::read(&api, &user, months.1),
    )?;
    let body = html! {
        div.head { h1 { "Usage" } }
        p.lead { "Hours of execution, in the months in which the executions ended." }
        (choose(&filter, now.offered(months), &projects.items))
        @if projects.next.is_some() {
            p.hint {
                "The names of the newest " (counted(PROJECTS.into(), "project")) " are known here. Others have their \
                 ids, and can be chosen by " code { "projectId" } " in the address."
            }
        }
        @if let Some(times) = &times { (times.show(&projects.items)) (sums::download_link(&filter)) }
        @if let Some(statement) = &statement { (statement::show(statement, months.1)) }
    };
    let title = "Usage".to_owned();
    Ok(Page { user: &user, title, trail: below_projects(), body }.into_response())
}

#[expect(clippy::disallowed_methods, reason = "the month is only shown first")]
fn this_month() -> Month {
    Month::of(Utc::now())
}

/// Reads the hours, unless the user may read statements alone.
async fn times(api: &Api, user: &Claims, filter: &Filter) -> Result<Option<Times>, Failure> {
    let may_read = user.may(Permission::ExecutionTimes) || !user.may(Permission::Invoicing);
    Ok(if may_read { Some(Times::read(api, filter).await?) } else { None })
}

/// Reads the newest projects, if the user may.
async fn projects(api: &Api, user: &Claims) -> Result<List<Project>, Failure> {
    if !user.may(Permission::Read) {
        return Ok(List { items: Vec::new(), next: None });
    }
    api.list::<Project>("/api/projects", &[("limit", PROJECTS)]).await
}

/// The form that chooses the months and the project.
fn choose(filter: &Filter, months: impl Iterator<Item = Month>, projects: &[Project]) -> Markup {
    let months: Vec<_> = months.map(|month| (month.to_string(), month.label())).collect();
    let months = || months.iter().map(|(month, label)| (month.as_str(), label.as_str()));
    let of = |month: &Option<String>| month.clone().unwrap_or_default();
    let named = projects.iter().map(|project| (project.id.as_str(), project.name.as_str()));
    let project = filter.project_id.as_deref().unwrap_or_default();
    html! {
        form.filters action=(PAGE) {
            (select_field("from", "From", months(), &of(&filter.from)))
            (select_field("to", "To", months(), &of(&filter.to)))
            @if !projects.is_empty() {
                (select_field("projectId", "Project", [("", "any")].into_iter().chain(named), project))
            }
            button { "Show" }
        }
    }
}

/// All hours of the filter, as the interface returns them.
async fn download(
    Session { api, .. }: Session,
    Query(filter): Query<Filter>,
) -> Result<Response, Failure> {
    api.download(&address("/api/executiontimes", &filter)).await
}
