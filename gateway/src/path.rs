//! Variable segments of paths, and short paths.

use axum::{
    extract::{
        FromRequestParts, MatchedPath, RawPathParams,
        path::ErrorKind,
        rejection::{PathRejection, RawPathParamsRejection},
    },
    routing::MethodRouter,
};
use http::request::Parts;
use serde::de::{DeserializeOwned, value, value::SeqDeserializer};
use utoipa::openapi::path::Paths;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::{operation::operations, problem::Problem, services::Services};

/// Records whose id alone makes a short path. An earlier one contains the later ones.
const WITH_SHORT_PATH: [&str; 5] = [
    "executions/{executionId}",
    "testreports/{testReportId}",
    "testplans/{testPlanId}",
    "testcases/{testCaseId}",
    "testsets/{testSetId}",
];

/// The variable segments of a path, as text: the services parse ids. Those that a short path leaves out
/// are empty.
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let rejection = match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(segments)) => return Ok(Self(segments)),
            Err(rejection) => rejection,
        };
        let left_out = left_out(parts, rejection)?;
        let given = RawPathParams::from_request_parts(parts, state).await?;
        let empty = std::iter::repeat_n("", left_out);
        let segments = empty.chain(given.iter().map(|(_, segment)| segment));
        let segments = SeqDeserializer::<_, value::Error>::new(segments);
        T::deserialize(segments).map(Self).map_err(|_| Problem::not_found())
    }
}

/// Returns the number of segments that a short path leaves out, or the problem of another path.
fn left_out(parts: &Parts, rejection: PathRejection) -> Result<usize, Problem> {
    let path = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
    let is_short = path.is_some_and(|path| short_path(path).as_deref() == Some(path));
    match rejection {
        PathRejection::FailedToDeserializePathParams(failure) if is_short => {
            match failure.into_kind() {
                ErrorKind::WrongNumberOfParameters { got, expected } if got < expected => {
                    Ok(expected - got)
                }
                _ => Err(Problem::not_found()),
            }
        }
        other => Err(other.into()),
    }
}

/// Returns the path without the records that contain its own.
fn short_path(path: &str) -> Option<String> {
    let start = WITH_SHORT_PATH.iter().find_map(|record| path.find(record))?;
    Some(format!("/api/{}", &path[start..]))
}

/// Routes that are also served at short paths.
pub(crate) trait ShortRoutes {
    /// Adds routes whose paths name all records, and the same ones with short paths.
    fn routes_also_short(self, routes: UtoipaMethodRouter<Services>) -> Self;
}

impl ShortRoutes for OpenApiRouter<Services> {
    fn routes_also_short(self, routes: UtoipaMethodRouter<Services>) -> Self {
        let short = shortened(routes.clone());
        self.routes(routes).routes(short)
    }
}

/// Gives routes short paths instead of their own.
///
/// # Panics
///
/// If the path of a route names no record that makes a short path.
pub(crate) fn shortened(
    (schemas, paths, handlers): UtoipaMethodRouter<Services>,
) -> UtoipaMethodRouter<Services> {
    let mut short = Paths::new();
    for (path, mut item) in paths.paths {
        for (_, operation) in operations(&mut item) {
            let id = operation.operation_id.take().unwrap_or_default();
            operation.operation_id =
                Some(id.trim_end_matches("_permanently").to_owned() + "_by_id");
        }
        let path = short_path(&path).unwrap_or_else(|| panic!("{path} has no short path"));
        short.paths.insert(path, item);
    }
    (schemas, short, handlers)
}

/// Returns the id of a record that a path may leave out, or have `0` for, which stands for any.
pub(crate) fn unless_zero(id: String) -> Option<String> {
    given(id).filter(|id| id != "0")
}

/// Returns the id of a record that a short path leaves out.
pub(crate) fn given(id: String) -> Option<String> {
    (!id.is_empty()).then_some(id)
}

/// A segment that cannot be decoded names no record.
impl From<PathRejection> for Problem {
    fn from(_: PathRejection) -> Self {
        Self::not_found()
    }
}

impl From<RawPathParamsRejection> for Problem {
    fn from(_: RawPathParamsRejection) -> Self {
        Self::not_found()
    }
}

/// Makes other methods than those of a permanent URL fail with 404: for them, `0` is not a valid
/// id.
pub(crate) fn read_only(route: MethodRouter<Services>) -> MethodRouter<Services> {
    route.fallback(async || Problem::not_found())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_path_begins_with_the_record_that_it_names() {
        for (path, short) in [
            ("/api/projects/{projectId}/executions/{executionId}", "/api/executions/{executionId}"),
            (
                "/api/projects/{projectId}/executions/{executionId}/reports/{testReportId}/position",
                "/api/executions/{executionId}/reports/{testReportId}/position",
            ),
            ("/api/projects/0/testcases/0/testplans/{testPlanId}", "/api/testplans/{testPlanId}"),
            ("/api/executions/{executionId}/junit", "/api/executions/{executionId}/junit"),
        ] {
            assert_eq!(short_path(path).as_deref(), Some(short));
        }
        assert_eq!(short_path("/api/projects/{projectId}/executions"), None);
    }
}
