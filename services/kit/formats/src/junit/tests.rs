//! Tests with reports of real tools.

mod unusual;

use assay_proto::{Fault, TestResult};

use crate::{Collected, Content, Test, read};

fn parse(file: &[u8]) -> Result<Vec<Test>, Fault> {
    let mut tests = Collected::default();
    read(file, &mut tests)?;
    Ok(tests.into_tests())
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
    assert_eq!(tests[0].suites, ["Unit", "Shop\\CartTest"]);
    assert_eq!(tests[2].suites[2], "Shop\\CartTest::testPays");
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
    assert!((tests[0].attempts[0].seconds - 3.0).abs() < f64::EPSILON);
}

#[test]
fn a_sum_of_durations_is_plausible() {
    let tests = tests(
        "<testsuites name='pytest tests'><testsuite name='pytest'>\
         <testcase classname='t' name='a' time='600000000'><failure message='call'/></testcase>\
         <testcase classname='t' name='a' time='600000000'><error message='teardown'/></testcase>\
         </testsuite></testsuites>",
    );
    assert_eq!((tests[0].seconds, tests[0].attempts[0].seconds), (0.0, 0.0), "it is unknown");
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
