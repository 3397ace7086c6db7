//! Ends known failures, and makes them known again. The interface changes one at a time, so that a page says which
//! were changed if one of them cannot be.

use std::time::Duration;

use axum::{
    Form,
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use http::{Method, StatusCode};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use uuid::Uuid;

use super::{KNOWN_FAILURES, KnownFailure, count, show};
use crate::{
    failure::{Failure, Problem},
    page::paged::Paged,
    record::Time,
    session::Session,
    text::plain,
};

/// Time after which no further known failure of a form is changed: well before the timeout of a page.
const LONGEST: Duration = Duration::from_secs(10);

/// A known failure that has been ended, to make it known again.
#[derive(Clone, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Ended {
    fingerprint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    test_case_id: Option<String>,
    every_case: bool,
    ticket: String,
    comment: String,
    muted_until: Time,
}

impl Ended {
    fn of(known: KnownFailure) -> Self {
        let KnownFailure { fingerprint, test_case_id, ticket, comment, muted_until, .. } = known;
        let every_case = test_case_id.is_none();
        Self { fingerprint, test_case_id, every_case, ticket, comment, muted_until }
    }
}

/// The values of a form that were acted on, and those that are left.
struct Outcome<V, T> {
    done: Vec<T>,
    /// The values that were not acted on, the first of which may be the one with the problem.
    left: Vec<V>,
    /// The reason why values are left.
    problem: Option<Problem>,
}

impl<V: Clone, T> Outcome<V, T> {
    /// Acts on values one after the other, until one fails or the time is over. Values for which there was nothing
    /// to do have no result.
    async fn of<R>(values: Vec<V>, act: impl Fn(V) -> R) -> Result<Self, Failure>
    where
        R: Future<Output = Result<Option<T>, Failure>>,
    {
        let deadline = Instant::now() + LONGEST;
        let mut done = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let problem = if Instant::now() >= deadline {
                let detail = "it takes too long".to_owned();
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Problem { status, detail, is_stale: false, trace_id: None }
            } else {
                match act(value.clone()).await {
                    Ok(result) => {
                        done.extend(result);
                        continue;
                    }
                    Err(Failure::Refused(problem)) => problem,
                    Err(failure) => return Err(failure),
                }
            };
            let left = values[index..].to_vec();
            return Ok(Self { done, left, problem: Some(problem) });
        }
        Ok(Self { done, left: Vec::new(), problem: None })
    }

    /// Returns the status of the page that shows the outcome.
    fn status(&self) -> StatusCode {
        self.problem.as_ref().map_or(StatusCode::OK, |problem| problem.status)
    }

    /// Says how many values are left, and why. `fate` is what they are.
    fn rest(&self, fate: &str) -> Markup {
        html! {
            @if let Some(problem) = &self.problem {
                p.alert role="alert" {
                    (count(self.left.len(), "failure")) " " (fate) ": "
                    @if problem.detail.is_empty() { (problem.status) } @else { (plain(&problem.detail)) }
                }
            }
        }
    }
}

/// Reads the values of a form, all of which must be valid.
fn values<V>(
    pairs: &[(String, String)],
    read: impl Fn(&str) -> Option<V>,
) -> Result<Vec<V>, Failure> {
    let known = pairs.iter().filter(|(name, _)| name == "known").map(|(_, value)| read(value));
    let known = known.take(KNOWN_FAILURES as usize).collect::<Option<Vec<_>>>();
    known.ok_or_else(Failure::not_found)
}

/// Ends known failures: their failures in later executions count again. Those that have ended meanwhile
/// are left out.
pub(super) async fn end(
    session: Session,
    Path(project): Path<Uuid>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let ids = values(&pairs, |id| id.parse::<Uuid>().ok())?;
    let api = &session.api;
    let ended = Outcome::of(ids, |id| async move {
        let path = format!("/api/projects/{project}/knownfailures/{id}");
        let known = api.get::<KnownFailure>(&path, &()).await.map(Ended::of);
        let Some(known) = found(known)? else { return Ok(None) };
        Ok(found(api.delete(&path).await)?.map(|()| known))
    })
    .await?;
    let announcement = html! {
        p.done role="status" { "Ended: " (count(ended.done.len(), "failure")) " will count again." }
        (ended.rest("could not be ended"))
        (form(project, &ended.done, "Undo"))
    };
    let page = show(&session, project, &Paged::default(), &announcement).await?;
    Ok((ended.status(), page).into_response())
}

/// Returns nothing for a record that does not exist any more.
fn found<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Err(failure) if failure.is_not_found() => Ok(None),
        other => other.map(Some),
    }
}

/// The form that makes failures known again.
fn form(project: Uuid, ended: &[Ended], label: &str) -> Markup {
    let values = ended.iter().filter_map(|known| serde_json::to_string(known).ok());
    html! {
        @if !ended.is_empty() {
            form.undo method="post" action=(format!("/projects/{project}/knownfailures/restore")) {
                @for known in values { input type="hidden" name="known" value=(known); }
                button { (label) }
            }
        }
    }
}

/// Makes failures known again that were ended. Those that somebody has made known meanwhile stay.
pub(super) async fn restore(
    session: Session,
    Path(project): Path<Uuid>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let ended = values(&pairs, |known| serde_json::from_str::<Ended>(known).ok())?;
    let (api, path) = (&session.api, &format!("/api/projects/{project}/knownfailures"));
    let restored = Outcome::of(ended, |known| async move {
        let created = api.send::<KnownFailure>(Method::POST, path, &known).await;
        match created {
            Ok(_) => Ok(Some(())),
            Err(failure) => failure.of_conflict().map(|_| None),
        }
    })
    .await?;
    if restored.problem.is_none() {
        let page = format!("/projects/{project}/knownfailures");
        return Ok(Redirect::to(&page).into_response());
    }
    let announcement = html! {
        p.done role="status" { (count(restored.done.len(), "failure")) " known again." }
        (restored.rest("could not be made known again"))
        (form(project, &restored.left, "Try again"))
    };
    let page = show(&session, project, &Paged::default(), &announcement).await?;
    Ok((restored.status(), page).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn values_after_one_that_fails_are_left() {
        let outcome = Outcome::of(vec![1, 2, 3, 4], |number| async move {
            match number {
                1 => Ok(Some("done")),
                2 => Ok(None),
                _ => Err(Failure::internal()),
            }
        });
        let outcome = outcome.await.unwrap();
        assert_eq!(
            (outcome.done.as_slice(), outcome.left.as_slice()),
            (&["done"][..], &[3, 4][..])
        );
        assert_eq!(outcome.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let html = outcome.rest("could not be ended").into_string();
        assert!(html.contains("2 failures could not be ended"), "{html}");
    }

    #[tokio::test(start_paused = true)]
    async fn values_after_a_long_time_are_left() {
        let outcome = Outcome::of(vec![1, 2, 3], |number| async move {
            tokio::time::sleep(LONGEST * 2 / 3).await;
            Ok(Some(number))
        });
        let outcome = outcome.await.unwrap();
        assert_eq!((outcome.done, outcome.left), (vec![1, 2], vec![3]));
    }

    #[test]
    fn a_form_with_a_value_that_is_not_valid_is_refused_as_a_whole() {
        let pairs = ["1", "x"].map(|value| ("known".to_owned(), value.to_owned()));
        let read = |value: &str| value.parse::<u32>().ok();
        assert!(values(&pairs, read).is_err());
        assert_eq!(values(&pairs[..1], read).unwrap(), [1]);
    }
}
