//! What follows from the shape of an operation, and so is not written at each of them: its path
//! parameters, who may call it, what its answers carry, and how it can fail.

use assay_proto::{Needs, POLICY, name_of};
use utoipa::openapi::{
    KnownFormat, ObjectBuilder, OpenApi, PathItem, RefOr, Required, SchemaFormat,
    path::{Operation, ParameterBuilder, ParameterIn},
    schema::Type,
    security::SecurityRequirement,
};

use super::{problems, versions};

pub(super) fn apply(document: &mut OpenApi) {
    let components = document.components.get_or_insert_default();
    problems::define(components);
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            name_path_parameters(path, operation);
            tell_who_may_call(operation);
            versions::tell_update(method, operation, components);
            versions::tell_headers(method, operation, components);
            problems::tell(method, operation);
        }
    }
    drop_what_nobody_sends(document);
}

/// What is written in changes only has another shape there.
fn drop_what_nobody_sends(document: &mut OpenApi) {
    let written = serde_json::to_string(document).unwrap_or_default();
    let is_sent = |name: &str| written.contains(&format!("\"#/components/schemas/{name}\""));
    let components = document.components.get_or_insert_default();
    components.schemas.retain(|name, _| !name.ends_with("Input") || is_sent(name));
}

pub(super) fn operations(
    item: &mut PathItem,
) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    let all = [
        ("GET", &mut item.get),
        ("POST", &mut item.post),
        ("PUT", &mut item.put),
        ("DELETE", &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Variable segments that are named so are ids; `{testCaseId}` is the id of the test case.
fn name_path_parameters(path: &str, operation: &mut Operation) {
    let parameters = operation.parameters.get_or_insert_default();
    let is_id = |name: &str| name.ends_with("Id");
    parameters.retain(|parameter| match parameter {
        RefOr::T(parameter) => {
            parameter.parameter_in != ParameterIn::Path || !is_id(&parameter.name)
        }
        RefOr::Ref(_) => true,
    });
    let names = path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    for (position, name) in names.filter(|name| is_id(name)).enumerate() {
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(format!("The id of the {}", noun(name))))
            .schema(Some(uuid()));
        parameters.insert(position, parameter.build().into());
    }
}

/// `testCaseId` is the id of a test case.
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

/// The id of an operation begins with the name of the method that it calls, and the contract says
/// who may call that.
fn tell_who_may_call(operation: &mut Operation) {
    let id = operation.operation_id.clone().unwrap_or_default().replace('_', "");
    let calls = |path: &str| {
        let method = path.rsplit('/').next().unwrap_or_default().to_lowercase();
        id.starts_with(&method).then_some(method.len())
    };
    let method = POLICY.iter().filter_map(|(path, needs)| Some((calls(path)?, *needs)));
    let needs = method.max_by_key(|(length, _)| *length).map(|(_, needs)| needs);
    let who = match needs {
        Some(Needs::AnyOf(permissions)) => {
            let names: Vec<String> =
                permissions.iter().map(|p| format!("`{}`", name_of(p))).collect();
            format!("Needs the permission {}.", names.join(" or "))
        }
        Some(Needs::Token) => "Needs a token.".to_owned(),
        Some(Needs::Nothing) => {
            operation.security = Some(vec![SecurityRequirement::default()]);
            "Needs no token.".to_owned()
        }
        None => panic!("no method is called by {:?}", operation.operation_id),
    };
    let more = operation.description.take().map(|text| format!("{text}\n\n")).unwrap_or_default();
    operation.description = Some(more + &who);
}
