use assay_proto::{VariableInput, catalog::SubjectInput};

use super::*;

fn fields(check: Check) -> Vec<String> {
    check.violations.into_iter().map(|violation| violation.field).collect()
}

#[test]
fn texts_are_checked_at_any_depth() {
    let variable = VariableInput { content: "a\0".into(), ..VariableInput::default() };
    let mut check = Check::default();
    check.texts(&SubjectInput {
        subject_type: 1,
        name: "x".repeat(LARGEST_TEXT + 1),
        framework_file_id: Some("\0".into()),
        variables: vec![VariableInput::default(), variable],
        ..SubjectInput::default()
    });
    let mut fields = fields(check);
    fields.sort();
    assert_eq!(fields, ["FrameworkFileId", "Name", "Variables/1/Content"]);
}

#[test]
fn names_and_numbers_have_limits() {
    let mut check = Check::default();
    for (field, name) in
        [("fits", "ü".repeat(255)), ("blank", " ".into()), ("long", "ü".repeat(256))]
    {
        check.name(field, &name);
    }
    for (field, number) in [
        ("zero", 0.0),
        ("largest", LARGEST_AMOUNT),
        ("nan", f64::NAN),
        ("inf", f64::INFINITY),
        ("below", -1.0),
        ("above", 1e300),
    ] {
        check.amount(field, number);
    }
    check.size("size", -1);
    let problem = check.violations[2].to_string();
    assert!(problem.ends_with("must be 0 to 1000000000000"), "{problem}");
    assert_eq!(fields(check), ["blank", "long", "nan", "inf", "below", "above", "size"]);
}

#[test]
fn ranges_include_their_ends() {
    let mut check = Check::default();
    for number in [0, 1, 3, 4] {
        check.range(&number.to_string(), number, 1..=3);
    }
    check.range("nan", f64::NAN, 0.0..=1.0);
    check.at_least("least", 1, 1);
    check.at_least("too little", 0, 1);
    let violations = check.violations.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(violations[0].ends_with("must be 1 to 3"), "{violations:?}");
    assert_eq!(fields(check), ["0", "4", "nan", "too little"]);
}

#[test]
fn lines_have_a_length_and_no_control_characters() {
    let mut check = Check::default();
    check.line("fits", &"ü".repeat(3), 1..=3);
    check.line("empty", "", 0..=3);
    check.line("short", "", 1..=3);
    check.line("long", "abcd", 0..=3);
    check.line("break", "a\n", 1..=3);
    check.length("tags", "abcd", 3);
    assert_eq!(fields(check), ["short", "long", "break", "tags"]);
}

#[test]
fn fields_are_relative_to_the_enclosing_one() {
    let mut check = Check::default();
    check.within(3, |check| {
        check.refuse("", "is wrong");
        check.within("Steps/0", |check| check.name("Name", ""));
        let invalid = Err::<(), _>(Fault::invalid("Id", "is wrong"));
        assert!(check.read(invalid).unwrap().is_none());
        check.refuse("Result", "is wrong");
    });
    check.refuse("Tags", "is wrong");
    assert!(!check.is_ok());
    assert_eq!(fields(check), ["3", "3/Steps/0/Name", "3/Id", "3/Result", "Tags"]);
}

#[test]
fn violations_beyond_the_limit_are_dropped() {
    let mut check = Check::with_limit(2);
    for field in ["a", "b", "c"] {
        assert_eq!(check.is_full(), field == "c");
        check.refuse(field, "is wrong");
    }
    assert_eq!(fields(check), ["a", "b"]);
}

#[test]
fn violations_of_a_part_join_the_others() {
    let mut check = Check::default();
    check.name_on_one_line("lines", "a\r\nBcc: b@example.com");
    assert!(check.read(Err::<(), _>(Fault::invalid("read", "is wrong"))).unwrap().is_none());
    assert!(check.read(Err::<(), _>(Fault::Unauthenticated)).is_err());
    assert_eq!(fields(check), ["lines", "read"]);
}

#[test]
fn pointers_are_escaped() {
    assert_eq!(below("TestCases", "a/b~c"), "TestCases/a~1b~0c");
}
