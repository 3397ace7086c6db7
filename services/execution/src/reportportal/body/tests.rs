//! Tests of the bodies of requests.

use super::*;

#[test]
fn attributes_of_users_are_tags() {
    let body = br#"{"name": " Nightly\n", "mode": "DEBUG", "rerunOf": "x", "attributes": [
        {"key": "branch", "value": "main"}, {"value": "a,b"}, {"key": null, "value": "smoke"}, {"key": "shard", "value": 2},
        {"key": "agent", "value": "behave-reportportal|5.1.1", "system": true}]}"#;
    let Opening { agent, request, .. } = opening("shop".to_owned(), body).unwrap();
    let input = request.execution.unwrap();
    assert_eq!(input.tags.as_deref(), Some("rerun, debug, branch:main, a b, smoke, shard:2"));
    assert_eq!((input.test_set.as_str(), input.branch.as_deref()), ("Nightly", Some("main")));
    assert_eq!(agent, "behave-reportportal|5.1.1");
}

#[test]
fn later_attributes_replace_tags_except_own_ones() {
    let body = br#"{"description": " Slow ", "attributes": [
        {"key": "build", "value": 7}, {"key": "agent", "value": "x", "system": true}]}"#;
    let Changes { description, tags, build, branch, .. } =
        changes(body, "rerun, branch:main").unwrap();
    assert_eq!(tags.as_deref(), Some("rerun, build:7"));
    assert_eq!((build.as_deref(), branch), (Some("7"), None));
    assert_eq!(description.as_deref(), Some("Slow"));
    let none = changes(br#"{"attributes": null, "description": null}"#, "rerun").unwrap();
    assert!(none.tags.is_none() && none.description.is_none());
}

#[test]
fn attributes_name_the_subject_and_the_environment() {
    let body = br#"{"name": "x", "attributes": [{"key": "env", "value": "staging"},
        {"key": "version", "value": "1.2"}, {"key": "build", "value": "7"}]}"#;
    let Opening { request, .. } = opening("shop".to_owned(), body).unwrap();
    assert_eq!(request.environment.as_deref(), Some("staging"));
    assert_eq!(request.subject.as_deref(), Some("1.2"));
}

#[test]
fn an_entry_names_its_launch() {
    let start =
        |body: &str| entry(LaunchEntryKind::Start, None, Bytes::copy_from_slice(body.as_bytes()));
    let id = "0197f5b0-0000-7000-8000-000000000001";
    assert!(start("{}").is_err());
    assert!(start("[]").is_err());
    assert!(start(r#"{"launchUuid": "x"}"#).is_err());
    let (entry, item) = start(&format!(r#"{{"launchUuid": "{id}", "uuid": "{id}"}}"#)).unwrap();
    assert_eq!((entry.launch.to_string(), item.to_string()), (id.to_owned(), id.to_owned()));
    assert_eq!(number(entry.launch), 1);
}
