//! Permissions that operations need, which are decided before the bodies of requests are read.
//!
//! The services decide it again; here, it keeps callers without permission from having bodies read and
//! parsed.

use std::collections::HashMap;

use assay_proto::{Needs, Permissions};
use axum::extract::MatchedPath;
use http::{Method, request::Parts};
use utoipa::openapi::OpenApi;

use crate::{
    operation::{method_of, operations},
    problem::Problem,
};

/// The needs of all operations, by path and HTTP method.
pub(crate) struct Access(HashMap<String, HashMap<Method, Needs>>);

impl Access {
    /// Returns the needs of the operations of documents whose routes name their contract methods.
    pub(crate) fn of(documents: impl IntoIterator<Item = OpenApi>) -> Self {
        let mut all = HashMap::<String, HashMap<Method, Needs>>::new();
        for (path, mut item) in documents.into_iter().flat_map(|document| document.paths.paths) {
            let operations = operations(&mut item).filter_map(|(method, operation)| {
                let needs = Needs::of(method_of(operation)?)?;
                Some((Method::from_bytes(method.as_bytes()).ok()?, needs))
            });
            all.entry(path).or_default().extend(operations);
        }
        Self(all)
    }

    /// Fails if a caller with these permissions may not use the operation that was requested. The routes
    /// of agents are not among the operations, and decide for themselves.
    pub(crate) fn check(&self, parts: &Parts, held: Permissions) -> Result<(), Problem> {
        let path = parts.extensions.get::<MatchedPath>().map(MatchedPath::as_str);
        let needs = path.and_then(|path| self.0.get(path)?.get(&parts.method));
        needs.map_or(Ok(()), |needs| needs.check(held).map_err(Problem::from))
    }
}
