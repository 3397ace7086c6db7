//! The body of a failed request (RFC 9457).

use std::borrow::Cow;

use assay_proto::Violation;
use assay_runtime::trace;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::Problem;

impl Problem {
    /// Returns the body as the response to a change of a project.
    pub(crate) fn into_example(self) -> Document {
        let instance = "/api/projects".to_owned();
        let trace_id = Some("0af7651916cd43dd8448eb211c80319c".to_owned());
        Document { trace_id, ..self.into_document(instance) }
    }

    pub(super) fn into_document(self, instance: String) -> Document {
        let invalid = self.status == StatusCode::UNPROCESSABLE_ENTITY;
        let errors = self.violations.into_iter().map(FieldProblem::from).collect();
        Document {
            kind: format!("urn:assay:problem:{}", self.code),
            title: title(&self.code),
            status: self.status.as_u16(),
            detail: self.detail,
            instance,
            code: self.code,
            trace_id: trace::id(),
            errors: invalid.then_some(errors),
        }
    }
}

/// The reason why a request failed (RFC 9457).
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub(crate) struct Document {
    /// The kind of problem: `urn:assay:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The kind of problem in words.
    title: String,
    /// The status of the response.
    status: u16,
    /// The cause of this problem.
    detail: Cow<'static, str>,
    /// The path of the request.
    instance: String,
    /// The stable name of the kind of problem, for programs.
    #[schema(example = "stale_data_version")]
    code: Cow<'static, str>,
    /// The id under which logs and traces have details.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    trace_id: Option<String>,
    /// The fields that are not valid; with status 422 only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    errors: Option<Vec<FieldProblem>>,
}

/// A field that is not valid.
#[derive(Serialize, ToSchema)]
#[schema(as = FieldProblem)]
pub(crate) struct FieldProblem {
    /// The field in the body as a JSON pointer (RFC 6901), or `/` and the name of a query
    /// parameter.
    #[schema(example = "/TestCases/3/Id")]
    pointer: String,
    /// The rule that the field breaks.
    detail: String,
}

impl From<Violation> for FieldProblem {
    fn from(violation: Violation) -> Self {
        let Violation { field, problem: detail } = violation;
        let pointer = if field.is_empty() { field } else { format!("/{field}") };
        Self { pointer, detail }
    }
}

/// Converts a code to a title: `stale_data_version` to `Stale data version`.
fn title(code: &str) -> String {
    let words = code.replace('_', " ");
    let mut letters = words.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
