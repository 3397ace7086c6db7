//! Tests with reports of real tools, and with hostile files.

use assay_proto::{Fault, TestResult};

use crate::{Content, Test, read};

fn parse(file: &[u8]) -> Result<Vec<Test>, Fault> {
    let mut tests = Vec::new();
    read(file, |test| {
        tests.push(test);
        Ok(())
    })?;
    Ok(tests)
}

fn tests(file: &str) -> Vec<Test> {
    parse(file.as_bytes()).unwrap()
}

/// Returns identifier, result and number of problems of each test, in all of its attempts.
fn outline(file: &str) -> Vec<(String, TestResult, usize)> {
    let problems = |test: &Test| test.attempts.iter().map(|attempt| attempt.problems.len()).sum();
    let outline = |test: &Test| (test.identifier(), test.result(), problems(test));
    tests(file).iter().map(outline).collect()
}

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("../../tests/files/junit/", $name, ".xml"))
    };
}

macro_rules! assert_outline {
    ($file:literal, $(($identifier:literal, $result:ident, $problems:literal)),* $(,)?) => {
        assert_eq!(
            outline(file!($file)),
            [$(($identifier.to_owned(), TestResult::$result, $problems)),*]
        );
    };
}

#[test]
fn pytest_reports_are_parsed() {
    assert_outline!(
        "pytest",
        ("test_shop.TestLogin.test_user_is_greeted", Passed, 0),
        ("test_shop.TestLogin.test_wrong_password_is_refused", Failed, 1),
        ("test_shop.test_amount[1]", Passed, 0),
        ("test_shop.test_amount[zw\\xf6lf]", Failed, 1),
        ("test_shop.test_amount[a.b[c]]", Passed, 0),
        ("test_shop.test_browser", Error, 1),
        ("test_shop.test_print", Canceled, 0),
        ("test_shop.test_known", Canceled, 0),
        ("test_shop.test_control_characters", Failed, 1),
    );
    let tests = tests(file!("pytest"));
    let problem = &tests[1].attempts[0].problems[0];
    assert_eq!(
        problem.message,
        "AssertionError: a wrong password was taken: ä < 5 & > 3\nassert 200 == 401"
    );
    assert!(problem.text.contains("print(\"trying <wrong> & \\\"quoted\\\" password\")"));
    assert!(tests[6].attempts[0].reason.contains("needs a printer"));
    assert_eq!(tests[0].path(), ["pytest", "test_shop.TestLogin", "test_user_is_greeted"]);
    let start = serde_json::to_value(tests[0].start).unwrap();
    assert!(start.as_str().unwrap().starts_with("2026-11-21T05:27:10.342187"));
}

#[test]
fn nextest_reports_are_parsed() {
    assert_outline!(
        "nextest",
        ("shop.tests::cart::adds_up", Passed, 0),
        ("shop.tests::cart::passes_the_second_time", Passed, 1),
        ("shop.tests::cart::refuses_negative_amounts", Failed, 2),
    );
    let tests = tests(file!("nextest"));
    assert!(tests[1].is_flaky());
    assert!(tests[1].attempts[0].seconds > 0.0 && tests[1].attempts[0].start.is_some());
    assert!(!tests[2].is_flaky());
    assert_eq!(tests[2].attempts.len(), 2);
    assert!(tests[2].attempts[1].output.contains("left: Err(\"negative & <bad>\")"));
    assert_eq!(tests[0].path(), ["shop", "tests::cart::adds_up"]);
}

#[test]
fn jest_reports_are_parsed() {
    assert_outline!(
        "jest",
        ("cart with items adds up.cart with items adds up", Passed, 0),
        (
            "cart with items refuses \"negative\" amounts.cart with items refuses \"negative\" amounts",
            Failed,
            1
        ),
        ("cart with items prints.cart with items prints", Canceled, 0),
        ("cart with items ships.cart with items ships", Passed, 0),
    );
}

#[test]
fn surefire_reports_are_parsed() {
    assert_outline!(
        "surefire",
        ("com.acme.shop.CartTest.addsUp", Passed, 0),
        ("com.acme.shop.CartTest.takesItsTime", Passed, 0),
        ("com.acme.shop.CartTest.refusesNegativeAmounts", Failed, 2),
        ("com.acme.shop.CartTest.passesInTheEnd", Passed, 2),
        ("com.acme.shop.CartTest.needsTheBank", Error, 1),
        ("com.acme.shop.CartTest.prints", Canceled, 0),
    );
    let tests = tests(file!("surefire"));
    assert!((tests[1].seconds - 1230.5).abs() < f64::EPSILON);
    let attempts = &tests[2].attempts;
    assert!(attempts[1].problems[0].text.contains("CartTest.java:31"));
    assert_eq!(
        (&*attempts[0].output, &*attempts[1].output),
        ("first attempt\n", "second attempt\n")
    );
    assert!(tests[3].is_flaky() && tests[3].attempts.len() == 3);
    assert_eq!(tests[5].attempts[0].reason, "no printer");
}

#[test]
fn gtest_reports_are_parsed() {
    assert_outline!(
        "gtest",
        ("MathTest.Addition", Failed, 2),
        ("MathTest.DISABLED_Division", Canceled, 0),
        ("MathTest.Subtraction", Canceled, 0),
        ("LogicTest.NonContradiction", Passed, 0),
        ("Some/Amounts.ArePositive/0", Passed, 0),
        ("Some/Amounts.ArePositive/1", Failed, 1),
    );
    let tests = tests(file!("gtest"));
    let start = serde_json::to_value(tests[0].start).unwrap();
    assert_eq!(start, "2026-11-21T20:07:30.539000Z");
    assert_eq!(tests[1].start, None, "the time of a test that did not run is unknown");
    assert!(tests[0].attempts[0].problems[1].message.contains("a < b & \\\"c\\\""));
    assert!(tests[2].attempts[0].reason.contains("needs hardware"));
}

#[test]
fn gotestsum_reports_are_parsed() {
    assert_outline!(
        "gotestsum",
        ("example.com/shop/cart.TestRefuses/negative_amounts", Failed, 1),
        ("example.com/shop/cart.TestRefuses", Failed, 1),
        ("example.com/shop/cart.TestPrints", Canceled, 0),
        ("example.com/shop/cart.TestAddsUp", Passed, 0),
        ("example.com/shop/cart.TestRefuses/zero", Passed, 0),
    );
    let tests = tests(file!("gotestsum"));
    assert!(tests[0].attempts[0].problems[0].text.contains("-1 was <taken> & \"kept\"\n"));
}

#[test]
fn go_junit_report_reports_are_parsed() {
    assert_outline!(
        "go-junit-report",
        ("example.com/shop/cart.TestAddsUp", Passed, 0),
        ("example.com/shop/cart.TestRefuses/negative_amounts", Failed, 1),
        ("example.com/shop/cart.TestPrints", Canceled, 0),
    );
}

#[test]
fn nested_suites_are_parsed() {
    assert_outline!(
        "phpunit",
        ("Shop.CartTest.testAddsUp", Passed, 0),
        ("Shop.CartTest.testPays with data set \"some\"", Passed, 0),
        ("Shop.CartTest.testPays with data set \"free & \"easy\"\"", Failed, 1),
        ("Shop.CartTest.testPrints", Canceled, 0),
        ("Shop.CartTest.testAsksTheBank", Error, 1),
    );
    let tests = tests(file!("phpunit"));
    assert_eq!(tests[0].suites, ["", "Unit", "Shop\\CartTest"]);
    assert_eq!(tests[2].suites[3], "Shop\\CartTest::testPays");
}

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
fn reruns_of_pytest_are_attempts() {
    let tests = tests(file!("pytest-reruns"));
    let attempts = |test: &Test| (test.name.clone(), test.attempts.len(), test.is_flaky());
    let retried: Vec<_> = tests.iter().map(attempts).filter(|(_, count, _)| *count > 1).collect();
    let expected = [
        ("test_wrong_password_is_refused", false),
        ("test_amount[zw\\xf6lf]", false),
        ("test_browser", false),
        ("test_flaky", true),
    ];
    assert_eq!(retried, expected.map(|(name, is_flaky)| (name.to_owned(), 2, is_flaky)));
    assert_eq!(tests[1].attempts[0].result, TestResult::Failed);
    assert_eq!(tests[0].links[0].target, "REQ-1");
}

#[test]
fn a_teardown_error_of_pytest_belongs_to_its_test() {
    let tests = tests(
        "<testsuites name='pytest tests'><testsuite name='pytest'>\
         <testcase classname='t' name='a' time='1'><failure message='call'/></testcase>\
         <testcase classname='t' name='a' time='2'><error message='teardown'/></testcase>\
         <testcase classname='t' name='b'/></testsuite></testsuites>",
    );
    assert_eq!(tests.len(), 2);
    assert_eq!((tests[0].result(), tests[0].attempts.len()), (TestResult::Error, 1));
    assert_eq!(tests[0].attempts[0].problems.len(), 2);
}

#[test]
fn projects_of_playwright_are_instances_of_a_case() {
    let tests = tests(file!("playwright"));
    let (chromium, firefox) = (&tests[0], &tests[7]);
    assert_eq!(chromium.identifier(), firefox.identifier());
    assert_eq!(
        (chromium.variant(), firefox.variant()),
        ("Project=chromium".into(), "Project=firefox".into())
    );
    assert_eq!(chromium.links[0].target, "https://example.org/7");
    let attachment = &tests[1].attempts[0].attachments[0];
    assert_eq!(attachment.name, "error-context.md");
    assert!(
        matches!(&attachment.content, Content::Path(path) if path.contains("refuses-chromium"))
    );
    assert_eq!(tests[1].attempts[0].attachments.len(), 2);
    let input = firefox.steps()[0].test_input.clone().unwrap();
    assert_eq!(input, "shop.spec.js / login › greets [Project=firefox]");
}

#[test]
fn tests_of_node_are_identified_by_their_suites() {
    let tests = tests(file!("node"));
    let identifiers: Vec<String> = tests.iter().map(Test::identifier).collect();
    assert_eq!(
        identifiers,
        ["cart.adds", "cart.refuses", "cart.prints", "cart.ships", "cart > outer.inner"]
    );
    let todo = &tests[3];
    assert_eq!(todo.result(), TestResult::Canceled, "an unfinished test is expected to fail");
    assert!(todo.attempts[0].reason.starts_with("not yet"));
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
