//! Tests of the advice about fields that an input does not have.

use assay_proto::{nearest, unknown_field};

#[test]
fn the_nearest_field_is_suggested() {
    let fields = || ["Name", "TargetGroup", "ImageFileId"].into_iter();
    for (name, expected) in [
        ("TargetGroop", Some("TargetGroup")),
        ("targetGroup", Some("TargetGroup")),
        ("name", Some("Name")),
        ("Colour", None),
        // Comparing a name takes time by its length.
        (format!("TargetGroup{}", "p".repeat(64)).as_str(), None),
    ] {
        assert_eq!(nearest(name, fields()), expected, "{name}");
    }
}

#[test]
fn errors_of_serde_are_understood() {
    for (error, name, suggestion) in [
        ("unknown field `Nmae`, expected `Name`", "Nmae", "`Name`"),
        ("unknown field `Nmae`, expected `Content` or `Name`", "Nmae", "`Name`"),
        ("unknown field `Nmae`, expected one of `Content`, `Name`, `No`", "Nmae", "`Name`"),
    ] {
        let (found, advice) = unknown_field(error).unwrap();
        assert_eq!(found, name);
        assert!(advice.contains(suggestion), "{advice}");
    }
    let (_, advice) = unknown_field("unknown field `Colour`, expected `Name`").unwrap();
    assert_eq!(advice, "no such field");
    assert!(unknown_field("missing field `Name`").is_none());
}
