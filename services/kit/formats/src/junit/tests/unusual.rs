//! Tests with unusual, broken and hostile files.

use assay_proto::Fault;

use super::{parse, tests};
use crate::Test;

#[test]
fn other_encodings_are_decoded() {
    let latin = b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\
        <testsuite name=\"caf\xe9\"><testcase name=\"caf\xe9\"/></testsuite>";
    assert_eq!(parse(latin).unwrap()[0].path(), ["café"]);
    let marked = "\u{feff}<testsuite><testcase name=\"café\"/></testsuite>";
    assert_eq!(tests(marked)[0].name, "café");
    for (mark, bytes) in
        [([0xfe, 0xff], u16::to_be_bytes as fn(u16) -> [u8; 2]), ([0xff, 0xfe], u16::to_le_bytes)]
    {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-16\"?>\
            <testsuite><testcase name=\"café\"/></testsuite>";
        let wide = mark.into_iter().chain(text.encode_utf16().flat_map(bytes));
        assert_eq!(parse(&wide.collect::<Vec<_>>()).unwrap()[0].name, "café");
    }
}

#[test]
fn misplaced_declarations_are_ignored() {
    let late = format!(
        "<testsuite><testcase name=\"é\"/>{}<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\
         <testcase name=\"é\"/></testsuite>",
        " ".repeat(100_000)
    );
    let long = format!(
        "<?xml version=\"1.0\" {} encoding=\"ISO-8859-1\"?><testsuite><testcase name=\"é\"/></testsuite>",
        " ".repeat(10_000)
    );
    let wrong =
        "<?xml version=\"1.0\" encoding=\"UTF-16\"?><testsuite><testcase name=\"é\"/></testsuite>";
    for file in [&late, &long, wrong] {
        assert!(tests(file).iter().all(|test| test.name == "é"), "{file:.80}");
    }
}

#[test]
fn missing_and_malformed_attributes_are_ignored() {
    let tests = tests(
        "<testsuites><testsuite><testcase/><testcase name='a' classname=' '/>\
        <testcase classname='C' time='soon' timestamp='today'/><unknown><testcase name='b'/></unknown>\
        </testsuite></testsuites>",
    );
    let identifiers: Vec<String> = tests.iter().map(Test::identifier).collect();
    assert_eq!(identifiers, ["unnamed", "a", "C", "b"]);
}

#[test]
fn nul_characters_are_replaced() {
    let tests =
        tests("<testsuite><testcase name='a\0b'><failure>x\0y</failure></testcase></testsuite>");
    assert_eq!(tests[0].name, "a\u{fffd}b");
    assert_eq!(tests[0].attempts[0].problems[0].text, "x\u{fffd}y");
}

#[test]
fn long_texts_are_truncated() {
    let long = "ä".repeat(100_000);
    let file = format!(
        "<testsuite><testcase name='a'><failure message='{long}'>{long}</failure>\
         <system-out>{long}end</system-out></testcase></testsuite>"
    );
    let attempt = &tests(&file)[0].attempts[0];
    assert_eq!(attempt.problems[0].message.len(), 4 << 10);
    assert_eq!(attempt.problems[0].text.len(), 32 << 10);
    assert!(attempt.output.len() <= 4 << 10 && attempt.output.ends_with("end"));
}

/// Returns the code of the fault.
fn rejected(file: &str) -> &'static str {
    match parse(file.as_bytes()) {
        Err(Fault::Refused { code, .. }) => code,
        Err(Fault::Malformed(_)) => "malformed",
        other => panic!("{other:?}"),
    }
}

#[test]
fn hostile_files_and_other_formats_are_rejected() {
    let bomb = "<!DOCTYPE l [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>\
        <testsuite><testcase name='x'><failure>&b;</failure></testcase></testsuite>";
    let external = "<!DOCTYPE l SYSTEM \"file:///etc/passwd\"><testsuite/>";
    for (file, code) in [
        (bomb, "doctype_refused"),
        (external, "doctype_refused"),
        ("<html><body/></html>", "unknown_format"),
        (&"<testsuite>".repeat(100_000), "too_deep"),
        ("", "malformed"),
        ("{\"not\": \"xml\"}", "unknown_format"),
        ("<testsuite><testcase>", "malformed"),
        ("<testsuite></testcase>", "malformed"),
        (
            "<testsuite><testcase name='a'><failure>&nope;</failure></testcase></testsuite>",
            "malformed",
        ),
    ] {
        assert_eq!(rejected(file), code, "{file:.60}");
    }
}

#[test]
fn errors_name_the_format_the_place_and_the_remedy() {
    let fault = parse(b"<testsuite><testcase></testsuite>").unwrap_err();
    let message = fault.to_string();
    for part in ["JUnit XML", "near byte 21", "send it as the tool wrote it"] {
        assert!(message.contains(part), "{message}");
    }
    let fault = parse(b"<html/>").unwrap_err();
    assert!(fault.to_string().contains("XML with the root html"), "{fault}");
}

#[test]
fn texts_of_any_size_are_read_in_pieces() {
    for text in ["ä", "&amp;", "&#228;a", "<![CDATA[ä]]>", "<!-- x -->y", "]]"] {
        let file = format!(
            "<testsuite><testcase name='{}'><failure>{}</failure><system-out>{}end</system-out>\
             </testcase><testcase name='b'/></testsuite>",
            "&quot;ä".repeat(20_000),
            text.repeat(20_000),
            text.repeat(20_000)
        );
        let tests = tests(&file);
        assert!(tests[0].name.starts_with("\"ä\"ä"), "{text}");
        assert_eq!(tests[1].name, "b");
        let attempt = &tests[0].attempts[0];
        let kept = &attempt.problems[0].text;
        assert!(kept.len() >= 20_000, "{text}: {}", kept.len());
        assert!(attempt.output.ends_with("end"), "{text}");
    }
}
