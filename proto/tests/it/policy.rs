//! Tests of the rules of access in the contracts.

use assay_proto::{DESCRIPTORS, Needs, Permission, Permissions, Reading};
use prost::Message as _;
use prost_types::FileDescriptorSet;

/// The path and the name of every method of the contracts.
fn methods() -> impl Iterator<Item = (String, String)> {
    let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap().file.into_iter();
    files.flat_map(|file| {
        let package = file.package().to_owned();
        file.service.into_iter().flat_map(move |service| {
            let service_path = format!("/{package}.{}", service.name());
            let method = |method: prost_types::MethodDescriptorProto| method.name().to_owned();
            let names: Vec<String> = service.method.into_iter().map(method).collect();
            names.into_iter().map(move |name| (format!("{service_path}/{name}"), name))
        })
    })
}

#[test]
fn permissions_are_listed_in_the_order_of_the_contract() {
    let set = Permissions::parse("UsagePermission", " Write,Read ,Reserved19,").unwrap();
    assert_eq!(set.to_string(), "Read, Write, Reserved19");
    assert!(set.contains(Permission::Read) && !set.contains(Permission::Execute));
    for wrong in ["", " , ", "read", "Read, Fly"] {
        assert!(Permissions::parse("UsagePermission", wrong).is_err(), "{wrong:?} was accepted");
    }
}

#[test]
fn methods_outside_the_contracts_have_no_access_rule() {
    assert!(Needs::of("/assay.catalog.v1.ProjectService/DropEverything").is_none());
    let create = Needs::of("/assay.catalog.v1.ProjectService/CreateProject");
    assert_eq!(create.unwrap().to_string(), "Write");
    let share = Needs::of("/assay.execution.v1.ShareLinkService/CreateShareLink").unwrap();
    assert_eq!(share.to_string(), "Execute and Read");
    for (held, may) in [("Execute", false), ("Read", false), ("Read, Execute", true)] {
        let held = Permissions::parse("UsagePermission", held).unwrap();
        assert_eq!(share.check(held).is_ok(), may, "{held}");
    }
}

#[test]
fn only_methods_that_read_may_be_repeated() {
    for (method, reading) in [
        ("catalog.v1.ProjectService/GetProject", Reading::Message),
        ("catalog.v1.TestCaseService/BatchGetTestCases", Reading::Stream),
        ("catalog.v1.ProjectService/ListProjects", Reading::Stream),
        ("catalog.v1.LookupService/FindRecords", Reading::Message),
        ("notification.v1.NotificationService/WatchNotifications", Reading::Events),
    ] {
        assert_eq!(Reading::of(&format!("/assay.{method}")), Some(reading), "{method}");
    }
    for (path, name) in methods().filter(|(path, _)| Reading::of(path).is_none()) {
        let reads = ["Read", "Show", "Search", "Count", "Query", "Fetch"];
        assert!(
            !reads.iter().any(|verb| name.starts_with(verb)),
            "{path} should be a Get or a List"
        );
    }
}
