//! A pool with its values, one of which is in a form.

use axum::{
    Form,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
};
use futures::try_join;
use http::{Method, StatusCode};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    form::{self, Entry},
    in_use,
};
use crate::{
    api::address,
    failure::Failure,
    layout::{Crumb, Page},
    page::{
        announcement::Announcement,
        paged::unless_empty,
        part::{below_project, text_field},
    },
    record::{Pool, PoolContent, PoolValue, Project},
    session::Session,
    text::{beginning, clean, plain},
};

/// Number of values on a page, and of contents of each.
const VALUES: usize = 25;
const CONTENTS: usize = 5;

const STALE: &str = "Somebody else has changed this pool since this page was shown. Send your change again to \
                     replace theirs.";

/// The part of the values that the page shows.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Part {
    /// Id of the value that is in a form.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// Index of the first value.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

impl Part {
    fn at(index: usize) -> Self {
        let from = index / VALUES * VALUES;
        Self { value: None, from: (from > 0).then(|| from.to_string()) }
    }

    /// Returns the index of the first value, with which the value in the form is on the page.
    fn begin(&self, values: &[PoolValue]) -> usize {
        let edited = self.value.as_ref();
        let edited = edited.and_then(|id| values.iter().position(|value| value.id == *id));
        let from = self.from.as_ref().and_then(|from| from.parse::<usize>().ok());
        edited.or(from).filter(|index| *index < values.len()).unwrap_or_default() / VALUES * VALUES
    }
}

pub(super) async fn page(
    session: Session,
    Path(ids): Path<(Uuid, Uuid)>,
    Query(part): Query<Part>,
    Query(announcement): Query<Announcement>,
) -> Result<Response, Failure> {
    show(&session, ids, &part, &announcement, None).await
}

/// Changes the name of the pool.
pub(super) async fn rename(
    session: Session,
    Path(ids): Path<(Uuid, Uuid)>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let entry = Entry::read(pairs);
    let input = json!({"Name": entry.name, "DataVersion": entry.version});
    match session.api.send::<Pool>(Method::PUT, &operation(ids), &input).await {
        Ok(_) => Ok(Redirect::to(&format!("{}?saved=yes", path(ids))).into_response()),
        Err(failure) => {
            let problem = failure.of_conflict().or_else(Failure::of_input)?;
            refuse(&session, ids, (entry, problem)).await
        }
    }
}

/// Adds, changes or removes a value.
pub(super) async fn save(
    session: Session,
    Path(ids): Path<(Uuid, Uuid)>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let (api, operation, entry) = (&session.api, operation(ids), Entry::read(pairs));
    let Pool { mut values, data_version, .. } = api.get::<Pool>(&operation, &()).await?;
    let Some(index) = entry.apply_to(&mut values) else {
        let problem = "Somebody else has removed this value.".to_owned();
        return refuse(&session, ids, (Entry::like(None), problem)).await;
    };
    // The other values are those that were read here, so the version is never left out.
    let version = entry.version.as_deref().unwrap_or(&data_version);
    let input: Value = json!({"Values": values, "DataVersion": version});
    match api.send::<Pool>(Method::PUT, &operation, &input).await {
        Ok(_) => {
            let announced = if entry.remove { "deleted" } else { "saved" };
            let page = address(&path(ids), &Part::at(index));
            let separator = if page.contains('?') { '&' } else { '?' };
            Ok(Redirect::to(&format!("{page}{separator}{announced}=yes")).into_response())
        }
        Err(failure) => {
            let problem = failure.of_conflict().map(|_| STALE.to_owned());
            let problem = problem.or_else(Failure::of_input)?;
            refuse(&session, ids, (entry, problem)).await
        }
    }
}

/// Deletes the pool, unless tests need it.
pub(super) async fn delete(
    session: Session,
    Path((project, id)): Path<(Uuid, Uuid)>,
) -> Result<Response, Failure> {
    match session.api.delete(&operation((project, id))).await {
        Err(failure) if !failure.is_not_found() => {
            let refused = (Entry::default(), failure.of_conflict()?);
            refuse(&session, (project, id), refused).await
        }
        // Somebody else may have deleted it meanwhile.
        _ => {
            let page = format!("/projects/{project}/pools?deleted=yes");
            Ok(Redirect::to(&page).into_response())
        }
    }
}

/// Shows the pool with what was entered, and the reason why it is refused.
async fn refuse(
    session: &Session,
    ids: (Uuid, Uuid),
    refused: (Entry, String),
) -> Result<Response, Failure> {
    let part = Part { value: refused.0.value.clone(), from: None };
    show(session, ids, &part, &Announcement::default(), Some(refused)).await
}

fn path((project, id): (Uuid, Uuid)) -> String {
    format!("/projects/{project}/pools/{id}")
}

/// Returns the path in the interface.
fn operation(ids: (Uuid, Uuid)) -> String {
    format!("/api{}", path(ids))
}

async fn show(
    Session { api, user }: &Session,
    ids: (Uuid, Uuid),
    part: &Part,
    announcement: &Announcement,
    refused: Option<(Entry, String)>,
) -> Result<Response, Failure> {
    let (project, operation) = (format!("/api/projects/{}", ids.0), operation(ids));
    let (project, pool) =
        try_join!(api.get::<Project>(&project, &()), api.get::<Pool>(&operation, &()))?;
    let (entry, problem) = refused.unzip();
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    let (path, begin, may_write) = (path(ids), part.begin(&pool.values), user.may("Write"));
    let of_new = entry.as_ref().filter(|entry| entry.value.as_deref() == Some(""));
    let name = entry.as_ref().filter(|entry| entry.value.is_none() && !entry.name.is_empty());
    let name = name.map_or(pool.name.as_str(), |entry| entry.name.as_str());
    let body = html! {
        div.head { h1 { bdi { (plain(&pool.name)) } } (in_use(&pool)) }
        (announcement.show())
        @if let Some(problem) = &problem { p.alert role="alert" { (plain(problem)) } }
        p.lead { "Each test gets a value that no other test has. Secrets are shown to engines only." }
        ol.rows.spaced { @for (index, value) in pool.values.iter().enumerate().skip(begin).take(VALUES) {
            @if may_write && part.value.as_ref() == Some(&value.id) {
                li.row #value {
                    @let entered = entry.as_ref().filter(|entry| entry.value.as_ref() == Some(&value.id));
                    (value_form(&path, &pool, entered.unwrap_or(&Entry::of(value))))
                }
            } @else { (row(&path, index, value, may_write)) }
        } }
        (pager(&path, begin, pool.values.len()))
        @if may_write {
            h2 { "New value" }
            (value_form(&path, &pool, of_new.unwrap_or(&Entry::like(pool.values.first()))))
            h2 { "Name" }
            form.filters method="post" action=(path) {
                (version(&pool))
                (text_field("name", "Name", Some(name)))
                button { "Rename" }
            }
            p.hint { "Variables that name this pool by another name keep their own contents." }
            details {
                summary { "Delete this pool" }
                form method="post" action=(format!("{path}/delete")) { button { "Delete" } }
            }
        }
    };
    let mut trail = below_project(&project);
    trail.push(Crumb(format!("/projects/{}/pools", ids.0), html! { "Pools" }));
    Ok((status, Page { user, title: pool.name.clone(), trail, body }).into_response())
}

fn version(pool: &Pool) -> Markup {
    html! { input type="hidden" name="version" value=(clean(&pool.data_version)); }
}

/// The form of a value, which is a new one or of the pool.
fn value_form(path: &str, pool: &Pool, entry: &Entry) -> Markup {
    let id = entry.value.as_deref().unwrap_or_default();
    html! {
        form method="post" action=(format!("{path}/values")) {
            (version(pool))
            input type="hidden" name="value" value=(clean(id));
            (form::fields(&entry.contents))
            @if id.is_empty() { button { "Add" } } @else {
                button { "Save" } " "
                button.quiet name="remove" value="yes" formnovalidate { "Remove" } " "
                a href=(path) { "Cancel" }
            }
        }
    }
}

fn row(path: &str, index: usize, value: &PoolValue, may_write: bool) -> Markup {
    let edited = Part { value: Some(value.id.clone()), from: None };
    let rest = value.contents.len().saturating_sub(CONTENTS);
    html! {
        li.row.past {
            span.mark {}
            div.what {
                @for one in value.contents.iter().take(CONTENTS) { p { (content(one)) } }
                @if rest > 0 { p.small { "and " (rest) " more" } }
            }
            span.marks {}
            @if may_write {
                a.time href=(format!("{}#value", address(path, &edited)))
                    aria-label=(format!("Change value {}", index + 1))
                { "Change" }
            }
        }
    }
}

fn content(PoolContent { name, content, is_secured }: &PoolContent) -> Markup {
    html! {
        @if name.is_empty() { span.dim { "all other variables" } } @else { code { bdi { (plain(name)) } } }
        " = "
        bdi { (plain(&beginning(content))) }
        @if *is_secured { " " span.badge.none { "Secret" } }
    }
}

/// Links to the values before and after those from `begin`.
fn pager(path: &str, begin: usize, count: usize) -> Markup {
    let of = |index: usize| address(path, &Part::at(index));
    html! {
        @if count > VALUES {
            nav.pager aria-label="Values" {
                @if begin > 0 { a.button href=(of(begin - VALUES)) rel="prev" { "« Previous values" } }
                @if begin + VALUES < count { a.button href=(of(begin + VALUES)) rel="next" { "Next values »" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_begins_with_a_part_that_has_the_value_in_the_form() {
        let value = |nr: usize| PoolValue { id: format!("v{nr}"), contents: Vec::new() };
        let values: Vec<_> = (0..60).map(value).collect();
        let begin = |value: Option<&str>, from: Option<&str>| {
            let [value, from] = [value, from].map(|text| text.map(str::to_owned));
            Part { value, from }.begin(&values)
        };
        assert_eq!((begin(None, None), begin(None, Some("25"))), (0, 25));
        assert_eq!((begin(Some("v59"), Some("0")), begin(Some("gone"), None)), (50, 0));
        assert_eq!((begin(None, Some("900")), begin(None, Some("-1"))), (0, 0));
        assert_eq!(Part::at(30).from.as_deref(), Some("25"));
        assert_eq!(pager("/p", 25, 60).into_string().matches("rel=").count(), 2);
    }
}
