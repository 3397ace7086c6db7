//! The table of permissions in the documentation: what each allows, by the contracts.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use assay_proto::{Permission, name_of};

const INTRODUCTION: &str = "\
# Permissions

A user group grants its members permissions, by name (`UsagePermission`). An API token grants some of those of its user. This page lists
which operations each permission allows. The tables are generated from the contracts, which the services enforce:
`UPDATE_PERMISSIONS=1 cargo nextest run -p assay-gateway permissions`.

An operation that names two permissions with `or` needs one of them, and one that names two with `and` needs both. Operations that need
only a valid token, such as the own favorites, are not listed.
";

/// Effects of permissions in addition to operations.
const EFFECTS: &[(Permission, &str)] = &[
    (Permission::Login, "Allows logins and API tokens of the user at the customer."),
    (
        Permission::Write,
        "Without it, results and `POST /api/executions` create no missing projects, test sets and test cases.",
    ),
    (
        Permission::Accept,
        "Allows the status `Accepted`, and `Investigation` and `InReview`, of test reports, and reviews that mute a failure.",
    ),
    (
        Permission::Reject,
        "Allows the status `Rejected`, and `Investigation` and `InReview`, of test reports.",
    ),
    (Permission::UserManagement, "Shows the entries of the audit log among notifications."),
    (Permission::CustomerManagement, "Allows `POST /api/token/refine` for every customer."),
    (
        Permission::AccessSecrets,
        "Shows secured variables of subjects and test plans, and passwords of environments, in clear. Others see asterisks.",
    ),
];

/// An operation: its tag, summary, method and path, and what it needs.
struct Operation {
    tag: String,
    summary: String,
    request: String,
    needs: String,
}

/// Returns the operations that need a permission. Short paths of an operation are left out.
fn operations() -> Vec<Operation> {
    let document = serde_json::to_value(assay_gateway::openapi()).unwrap();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let text = |name: &str| operation[name].as_str().unwrap_or_default().to_owned();
            let description = text("description");
            let last = description.lines().last().unwrap_or_default();
            let needs = last.strip_prefix("Needs the permission ");
            let Some(needs) = needs.filter(|_| !text("operationId").ends_with("_by_id")) else {
                continue;
            };
            operations.push(Operation {
                tag: operation["tags"][0].as_str().unwrap_or_default().to_owned(),
                summary: text("summary")
                    .trim_end_matches('.')
                    .replace('\n', " ")
                    .replace('|', "\\|"),
                request: format!("{} {path}", method.to_uppercase()),
                needs: needs.trim_end_matches('.').to_owned(),
            });
        }
    }
    operations.sort_by(|one, other| (&one.tag, &one.request).cmp(&(&other.tag, &other.request)));
    operations
}

fn permissions() -> impl Iterator<Item = Permission> {
    (1..).map_while(|number| Permission::try_from(number).ok())
}

fn effect(permission: Permission) -> Option<&'static str> {
    EFFECTS.iter().find(|(of, _)| *of == permission).map(|(_, effect)| *effect)
}

/// Returns the page.
fn page() -> String {
    let operations = operations();
    let mut of = BTreeMap::<String, Vec<&Operation>>::new();
    for operation in &operations {
        for name in operation.needs.split(' ').filter_map(|word| word.strip_prefix('`')) {
            of.entry(name.trim_end_matches('`').to_owned()).or_default().push(operation);
        }
    }
    let mut page = INTRODUCTION.to_owned();
    let mut unused = Vec::new();
    for permission in permissions() {
        let name: String = name_of(permission);
        let operations = of.remove(&name).unwrap_or_default();
        let effect = effect(permission);
        if operations.is_empty() && effect.is_none() {
            unused.push(format!("`{name}`"));
            continue;
        }
        write!(page, "\n## {name}\n").unwrap();
        if let Some(effect) = effect {
            write!(page, "\n{effect}\n").unwrap();
        }
        if !operations.is_empty() {
            page += "\n| Operation | Request | Needs |\n|---|---|---|\n";
        }
        for Operation { summary, request, needs, .. } in operations {
            let needs = if *needs == format!("`{name}`") { "" } else { needs };
            writeln!(page, "| {summary} | `{request}` | {needs} |").unwrap();
        }
    }
    assert!(of.is_empty(), "no such permissions: {:?}", of.keys());
    let unused = unused.join(", ");
    page + "\n## Permissions without effect\n\nThese permissions can be granted, and allow nothing: "
        + &unused
        + ".\n"
}

/// Run with `UPDATE_PERMISSIONS=1` to update the committed page.
#[test]
fn the_page_of_permissions_is_that_of_the_contracts() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/permissions.md");
    let page = page();
    if std::env::var_os("UPDATE_PERMISSIONS").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == page, "docs/permissions.md is outdated: run with UPDATE_PERMISSIONS=1");
}

#[test]
fn only_reserved_permissions_and_the_management_of_claims_allow_nothing() {
    let page = page();
    let (_, unused) = page.split_once("allow nothing: ").unwrap();
    let unused =
        unused.trim_end().trim_end_matches('.').split(", ").map(|name| name.trim_matches('`'));
    let others: Vec<_> = unused.filter(|name| !name.starts_with("Reserved")).collect();
    assert_eq!(others, ["ClaimManagement"]);
}
