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
    let external = "<!DOCTYPE l [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><testsuite/>";
    let parameter = "<!DOCTYPE l [<!ENTITY % a SYSTEM \"file:///etc/passwd\"> %a;]><testsuite/>";
    let large = &format!("<!DOCTYPE l [{}]><testsuite/>", " ".repeat(5000));
    for (file, code) in [
        (bomb, "doctype_refused"),
        (external, "doctype_refused"),
        (parameter, "doctype_refused"),
        (large, "doctype_refused"),
        ("<html><body/></html>", "unknown_format"),
        (&"<testsuite>".repeat(100_000), "too_deep"),
        ("", "malformed"),
        ("{\"not\": \"xml\"}", "unknown_format"),
        ("<testsuite><testcase>", "malformed"),
        ("<testsuite></testcase>", "malformed"),
    ] {
        assert_eq!(rejected(file), code, "{file:.60}");
    }
}

#[test]
fn errors_name_the_format_the_place_and_the_remedy() {
    let file = b"<testsuite><!--\n\n-->\n<testcase name='a'/>\n  <testcase></testsuite>";
    let message = parse(file).unwrap_err().to_string();
    for part in ["JUnit XML", "line 5, column 13", "send it as the tool wrote it", "partial=true"] {
        assert!(message.contains(part), "{message}");
    }
    let fault = parse(b"<html/>").unwrap_err();
    assert!(fault.to_string().contains("XML with the root html"), "{fault}");
}

#[test]
fn tests_in_front_of_the_place_where_a_file_is_broken_are_passed_on() {
    for suite in ["pytest", "shop"] {
        let file = format!(
            "<testsuite name='{suite}'><testcase classname='c' name='a'/><testcase classname='c' name='b'>"
        );
        let mut names = Vec::new();
        let broken = crate::read(file.as_bytes(), |test: Test| {
            names.push(test.name);
            Ok(())
        });
        assert!(broken.is_err());
        assert_eq!(names, ["a"], "{suite}");
    }
}

#[test]
fn document_types_without_entities_are_ignored() {
    for doctype in [
        "<!DOCTYPE testsuites>",
        "<!DOCTYPE testsuite SYSTEM \"junit.dtd\">",
        "<!DOCTYPE testsuite PUBLIC \"-//x//y\" \"http://example.org/junit.dtd\">",
        "<!DOCTYPE testsuite [<!ELEMENT testsuite (testcase)> <!ATTLIST testcase name CDATA \"a\">]>",
    ] {
        let file = format!("{doctype}<testsuite><testcase name='a'/></testsuite>");
        assert_eq!(tests(&file).len(), 1, "{doctype}");
    }
}

#[test]
fn unknown_entities_and_lone_ampersands_stay_as_they_are() {
    let file = "<testsuite><testcase name='a &nope; & b'><failure>x &nope; & y &#55357;&#56832; \
        &#0;&#55357;</failure></testcase></testsuite>";
    let test = &tests(file)[0];
    assert_eq!(test.name, "a &nope; & b");
    assert_eq!(test.attempts[0].problems[0].text, "x &nope; & y 😀 \u{fffd}\u{fffd}");
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
