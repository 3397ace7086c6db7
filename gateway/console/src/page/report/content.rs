//! A whole text of a step, as a file that browsers show without running anything in it.

use axum::{
    extract::{Path, Query},
    response::{IntoResponse, Response},
};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::view::{View, instance, report};
use crate::{
    api::address,
    failure::Failure,
    record::{Attempt, Step},
    session::Session,
};

/// A text of a step.
#[derive(Clone, Copy, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Actual,
    Expected,
    Input,
}

impl Part {
    pub(super) fn of(self, step: &Step) -> &str {
        match self {
            Self::Actual => &step.actual_result,
            Self::Expected => &step.expected_result,
            Self::Input => &step.test_input,
        }
    }

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Actual => "Actual result",
            Self::Expected => "Expected result",
            Self::Input => "Input",
        }
    }

    /// Returns the CSS class of the text.
    pub(super) fn class(self, step: &Step) -> &'static str {
        if self == Self::Actual && step.result.is_failure() { "failed" } else { "" }
    }
}

/// The attempt that texts belong to.
pub(super) struct Shown<'a> {
    pub(super) page: &'a str,
    pub(super) instance: &'a str,
    pub(super) attempt: &'a Attempt,
}

/// The query of a text.
#[derive(Deserialize, Serialize)]
pub(in crate::page) struct ContentQuery {
    pub(in crate::page) instance: String,
    pub(in crate::page) attempt: String,
    step: i64,
    part: Part,
}

impl Shown<'_> {
    /// Returns the address of a text.
    pub(super) fn link(&self, step: &Step, part: Part) -> String {
        let query = ContentQuery {
            instance: self.instance.to_owned(),
            attempt: self.attempt.number.to_string(),
            step: step.number,
            part,
        };
        address(&format!("{}/content", self.page), &query)
    }
}

/// Shows a text.
pub(super) async fn content(
    Session { api, .. }: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<ContentQuery>,
) -> Result<Response, Failure> {
    let report = report(&api, id).await?;
    let view = View { attempt: Some(query.attempt.clone()), ..View::default() };
    let id: Uuid = query.instance.parse().map_err(|_| Failure::not_found())?;
    let instance = instance(&api, &report, &id.to_string()).await?;
    query.of(instance.attempt(&view))
}

impl ContentQuery {
    /// Returns the text of a step of this attempt as a file.
    pub(in crate::page) fn of(&self, attempt: &Attempt) -> Result<Response, Failure> {
        let step = attempt.steps.iter().find(|step| step.number == self.step);
        let step = step.ok_or_else(Failure::not_found)?;
        let headers = [
            (CONTENT_TYPE, "text/plain; charset=utf-8"),
            (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        ];
        Ok((headers, self.part.of(step).to_owned()).into_response())
    }
}
