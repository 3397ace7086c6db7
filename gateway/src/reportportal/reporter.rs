//! The caller of the reporting interface.

use assay_auth::Caller;
use assay_proto::Needs;
use axum::extract::FromRequestParts;
use http::request::Parts;

use crate::{problem::Problem, services::Services};

/// The contract method whose permission all requests about launches need.
const REPORT: &str = "/assay.execution.v1.LaunchService/AddLaunchEntry";

/// A caller who may report launches. Others are refused before their bodies are read.
pub(super) struct Reporter(pub(super) Caller);

impl FromRequestParts<Services> for Reporter {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let caller = Caller::from_request_parts(parts, services).await?;
        Needs::of(REPORT).ok_or_else(Problem::internal)?.check(caller.permissions)?;
        Ok(Self(caller))
    }
}
