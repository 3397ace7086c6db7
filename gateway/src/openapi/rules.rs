//! Parts of the document that follow from the shape of an operation: its path parameters, the
//! permission it needs, its headers and its failures.

use assay_proto::Needs;
use utoipa::openapi::{
    KnownFormat, ObjectBuilder, OpenApi, RefOr, Required, SchemaFormat,
    path::{Operation, ParameterBuilder, ParameterIn},
    schema::Type,
    security::SecurityRequirement,
};

use super::{media, problems, versions, vocabularies};
use crate::operation::{METHOD, operations};

/// Parameter of a path with the secret of a share link.
const SECRET: &str = "token";

pub(super) fn apply(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    problems::define(components);
    vocabularies::describe(components);
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            describe_path_parameters(path, operation);
            describe_permission(operation);
            media::describe(operation);
            versions::describe_update(method, operation, components);
            versions::describe_headers(method, operation, components);
            problems::describe(method, operation);
        }
    }
    allow_null_in_new_records(document);
    remove_unused_inputs(document);
}

/// Describes that fields of the bodies of new records may be null. The `Changes` of a record are described
/// before, from the same inputs.
fn allow_null_in_new_records(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    let all = document.paths.paths.values_mut().flat_map(operations);
    for (_, operation) in all {
        if let Some(input) = media::body_schema(operation).and_then(media::name)
            && input.ends_with("Input")
        {
            vocabularies::allow_null(components, input);
        }
    }
}

/// Removes input schemas that no request refers to: updates refer to their `Changes` schema
/// instead.
fn remove_unused_inputs(document: &mut OpenApi) {
    let written = serde_json::to_string(document).unwrap_or_default();
    let is_used = |name: &str| written.contains(&format!("\"#/components/schemas/{name}\""));
    let components = document.components.get_or_insert_default();
    components.schemas.retain(|name, _| !name.ends_with("Input") || is_used(name));
}

/// Declares the ids in a path as UUIDs, named like its segments, and the secret of a share link;
/// handlers take them as plain strings.
fn describe_path_parameters(path: &str, operation: &mut Operation) {
    let parameters = operation.parameters.get_or_insert_default();
    let is_here = |name: &str| name.ends_with("Id") || name == SECRET;
    parameters.retain(|parameter| match parameter {
        RefOr::T(parameter) => {
            parameter.parameter_in != ParameterIn::Path || !is_here(&parameter.name)
        }
        RefOr::Ref(_) => true,
    });
    let names = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    for (position, name) in names.filter(|name| is_here(name)).enumerate() {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True);
        let parameter = if name == SECRET {
            let text = ObjectBuilder::new().schema_type(Type::String);
            let example = Some("s5bYfVxkUdSrfYlNqQ0lMvGkTgNfIeXpWcHjDzRaEto".into());
            parameter
                .description(Some("Secret of the share link"))
                .schema(Some(text))
                .example(example)
        } else {
            let description = format!("Id of the {}", noun(name));
            parameter.description(Some(description)).schema(Some(uuid()))
        };
        parameters.insert(position, parameter.build().into());
    }
}

/// Converts the name of a parameter to words: `testCaseId` to `test case`.
fn noun(name: &str) -> String {
    let name = name.trim_end_matches("Id");
    let letters = name.chars().map(|letter| match letter {
        'A'..='Z' => format!(" {}", letter.to_ascii_lowercase()),
        _ => letter.to_string(),
    });
    letters.collect()
}

fn uuid() -> ObjectBuilder {
    let format = SchemaFormat::KnownFormat(KnownFormat::Uuid);
    ObjectBuilder::new().schema_type(Type::String).format(Some(format))
}

/// States the permission that the contract requires for the method of an operation.
///
/// # Panics
///
/// If the route names no method, or one that no contract has.
fn describe_permission(operation: &mut Operation) {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let mut extensions = operation.extensions.take().unwrap_or_default();
    let method = extensions.remove(METHOD);
    operation.extensions = Some(extensions).filter(|extensions| !extensions.is_empty());
    let method = method.as_ref().and_then(|method| method.as_str());
    let method = method.unwrap_or_else(|| panic!("the route of {id} has no `{METHOD}`"));
    let needs = match Needs::of(method) {
        Some(needs @ Needs::Permissions { .. }) => {
            let names = needs.to_string();
            let quoted = names.split(' ').map(|word| match word {
                "and" | "or" => word.to_owned(),
                name => format!("`{name}`"),
            });
            format!("Needs the permission {}.", quoted.collect::<Vec<_>>().join(" "))
        }
        Some(Needs::Token) => "Needs a token.".to_owned(),
        Some(Needs::Nothing) => {
            operation.security = Some(vec![SecurityRequirement::default()]);
            "Needs no token.".to_owned()
        }
        None => panic!("`{METHOD}` of {id}: no contract has the method {method}"),
    };
    let text = operation.description.take().map(|text| format!("{text}\n\n")).unwrap_or_default();
    operation.description = Some(text + &needs);
}

#[cfg(test)]
mod tests {
    use utoipa::openapi::extensions::Extensions;

    use super::*;
    use crate::routes;

    /// Methods that only services call, and those of agents of ReportPortal and TestRail.
    const INTERNAL: [&str; 29] = [
        "/assay.catalog.v1.SnapshotService/FindTestSet",
        "/assay.catalog.v1.AutomationService/GetAutomationRecords",
        "/assay.catalog.v1.LookupService/FindDeletedProjects",
        "/assay.catalog.v1.LookupService/FindIdentifiers",
        "/assay.catalog.v1.LookupService/FindRecords",
        "/assay.catalog.v1.LookupService/GetGate",
        "/assay.catalog.v1.LookupService/GetMetricsSettings",
        "/assay.catalog.v1.LookupService/GetOrigin",
        "/assay.catalog.v1.LookupService/GetTestCaseName",
        "/assay.catalog.v1.SnapshotService/AdoptTestCases",
        "/assay.catalog.v1.SnapshotService/TakeSnapshot",
        "/assay.execution.v1.AutomationService/GetLeasedRecords",
        "/assay.execution.v1.ExecutionTimeService/GetMonthlyExecutionTime",
        "/assay.execution.v1.LaunchService/AddLaunchEntry",
        "/assay.execution.v1.LaunchService/AddLaunchLogs",
        "/assay.execution.v1.LaunchService/FindLaunches",
        "/assay.execution.v1.LaunchService/FinishLaunch",
        "/assay.execution.v1.LaunchService/MergeLaunches",
        "/assay.execution.v1.LaunchService/StartLaunch",
        "/assay.execution.v1.LaunchService/UpdateLaunch",
        "/assay.execution.v1.RunService/AddRunAttachment",
        "/assay.execution.v1.RunService/AddRunResults",
        "/assay.execution.v1.RunService/AssignNumbers",
        "/assay.execution.v1.RunService/FindNumbers",
        "/assay.execution.v1.RunService/ListNumbers",
        "/assay.execution.v1.RunService/UpdateDetails",
        "/assay.identity.v1.CustomerService/FindDeletedCustomers",
        "/assay.identity.v1.TokenService/ExchangeApiToken",
        "/assay.identity.v1.TokenService/ListRevocations",
    ];

    fn operation(method: Option<&str>) -> Operation {
        let mut operation = Operation::new();
        operation.extensions =
            method.map(|method| Extensions::from_iter([(METHOD, method.to_owned())]));
        operation
    }

    #[test]
    fn every_method_of_the_contracts_has_a_route_or_is_internal() {
        let routes = serde_json::to_string(&routes::all().into_openapi()).unwrap();
        for (method, _) in assay_proto::POLICY {
            let has_route = routes.contains(&format!("{METHOD:?}:{method:?}"));
            assert_ne!(
                has_route,
                INTERNAL.contains(method),
                "{method} needs a route that is merged in `routes.rs`, or a line in `INTERNAL`"
            );
        }
    }

    #[test]
    fn the_permission_is_that_of_the_named_method() {
        let mut operation = operation(Some("/assay.catalog.v1.ProjectService/CreateProject"));
        describe_permission(&mut operation);
        assert_eq!(operation.description.as_deref(), Some("Needs the permission `Write`."));
        assert!(operation.extensions.is_none());
    }

    #[test]
    #[should_panic(expected = "has no `x-grpc-method`")]
    fn a_route_without_a_method_is_rejected() {
        describe_permission(&mut operation(None));
    }

    #[test]
    #[should_panic(expected = "no contract has the method")]
    fn a_route_with_an_unknown_method_is_rejected() {
        describe_permission(&mut operation(Some("/assay.catalog.v1.ProjectService/Drop")));
    }
}
