//! Permissions that operations need and query parameters that they have, as their routes declare them. Both are checked
//! before the bodies of requests are read: permissions where a caller is admitted, parameters where they are read.
//!
//! The services decide about permissions again; here, it keeps callers without permission from having bodies read and
//! parsed. A misspelt query parameter is known here only: the operation would do something else than was meant, such as
//! list all executions instead of those of a branch, and nobody would see it.

use std::collections::HashMap;

use assay_proto::{Needs, Permissions, nearest};
use axum::extract::MatchedPath;
use http::{Method, request::Parts};
use url::form_urlencoded;
use utoipa::openapi::{
    OpenApi, RefOr, Schema,
    path::{Operation, Parameter, ParameterIn},
};

use crate::{
    operation::{method_of, operations},
    problem::Problem,
};

/// Maximum number of unknown query parameters of a request that are compared with those of the operation.
const MAX_COMPARED: usize = 64;

/// How an operation treats a query parameter that it does not have, unless it is probably a misspelt one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// A proxy or a browser may have added it.
    Ignored,
    Refused,
}

/// The declarations of all operations, by path and HTTP method.
pub(crate) struct Declared(HashMap<String, HashMap<Method, Declaration>>);

struct Declaration {
    needs: Option<Needs>,
    query: Vec<QueryParameter>,
}

struct QueryParameter {
    name: String,
    /// Whether an empty value is refused where unknown parameters are; elsewhere it counts as absent.
    needs_value: bool,
}

impl Declared {
    /// Returns the declarations of the operations of documents.
    pub(crate) fn of(documents: impl IntoIterator<Item = OpenApi>) -> Self {
        let mut all = HashMap::<String, HashMap<Method, Declaration>>::new();
        for (path, mut item) in documents.into_iter().flat_map(|document| document.paths.paths) {
            let operations = operations(&mut item).filter_map(|(method, operation)| {
                Some((Method::from_bytes(method.as_bytes()).ok()?, Declaration::of(operation)))
            });
            all.entry(path).or_default().extend(operations);
        }
        Self(all)
    }

    /// Fails if a caller with these permissions may not use the operation that was requested. The routes of agents are not
    /// among the operations, and decide for themselves.
    pub(crate) fn require_permission(
        &self,
        parts: &Parts,
        held: Permissions,
    ) -> Result<(), Problem> {
        let needs = self.operation(parts).and_then(|operation| operation.needs.as_ref());
        needs.map_or(Ok(()), |needs| needs.check(held).map_err(Problem::from))
    }

    /// Fails if a query parameter of a request is probably a misspelt one of its operation, or if `unknown` ones are
    /// refused and it has one, or an empty one whose smallest length is 1.
    pub(crate) fn check_query(&self, parts: &Parts, unknown: Unknown) -> Result<(), Problem> {
        self.operation(parts).map_or(Ok(()), |operation| operation.check_query(parts, unknown))
    }

    fn operation(&self, parts: &Parts) -> Option<&Declaration> {
        let path = parts.extensions.get::<MatchedPath>()?;
        self.0.get(path.as_str())?.get(&parts.method)
    }
}

impl Declaration {
    fn of(operation: &Operation) -> Self {
        let parameters = operation.parameters.iter().flatten();
        Self {
            needs: method_of(operation).and_then(Needs::of),
            query: parameters.filter_map(QueryParameter::of).collect(),
        }
    }

    fn check_query(&self, parts: &Parts, unknown: Unknown) -> Result<(), Problem> {
        let mut compared = 0;
        for (name, value) in
            form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
        {
            if let Some(parameter) = self.parameter(&name) {
                if unknown == Unknown::Refused && value.is_empty() && parameter.needs_value {
                    let rule =
                        "must not be empty: leave it out, or set the variable that it comes from";
                    return Err(Problem::invalid(name, rule));
                }
            } else if compared < MAX_COMPARED {
                compared += 1;
                self.refuse(&name, unknown)?;
            }
        }
        Ok(())
    }

    /// Fails if a parameter that the operation does not have is probably a misspelt one, or if such ones are refused.
    fn refuse(&self, name: &str, unknown: Unknown) -> Result<(), Problem> {
        let advice = match (nearest(name, self.names()), unknown) {
            (Some(meant), _) => format!("did you mean `{meant}`?"),
            (None, Unknown::Refused) => {
                format!("there are {}", self.names().collect::<Vec<_>>().join(", "))
            }
            (None, Unknown::Ignored) => return Ok(()),
        };
        Err(Problem::invalid(name, format!("no such parameter; {advice}")))
    }

    fn parameter(&self, name: &str) -> Option<&QueryParameter> {
        self.query.iter().find(|parameter| parameter.name == name)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.query.iter().map(|parameter| parameter.name.as_str())
    }
}

impl QueryParameter {
    fn of(parameter: &RefOr<Parameter>) -> Option<Self> {
        let RefOr::T(Parameter { name, parameter_in: ParameterIn::Query, schema, .. }) = parameter
        else {
            return None;
        };
        let least = match schema {
            Some(RefOr::T(Schema::Object(schema))) => schema.min_length,
            _ => None,
        };
        Some(Self { name: name.clone(), needs_value: least.is_some_and(|least| least > 0) })
    }
}
