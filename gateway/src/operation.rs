//! Operations as their routes document them.

use utoipa::openapi::{PathItem, path::Operation};

/// Extension by which a route names the contract method that it calls, as
/// `/package.Service/Method`.
pub(crate) const METHOD: &str = "x-grpc-method";

/// Lists the operations of a path with their HTTP methods.
pub(crate) fn operations(
    item: &mut PathItem,
) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("GET", &mut item.get),
        ("POST", &mut item.post),
        ("PUT", &mut item.put),
        ("PATCH", &mut item.patch),
        ("DELETE", &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Returns the path of the contract method that an operation calls, as its route names it.
pub(crate) fn method_of(operation: &Operation) -> Option<&str> {
    operation.extensions.as_ref()?.get(METHOD)?.as_str()
}
