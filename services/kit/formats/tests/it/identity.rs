//! The same test has the same identifier in different reports of its tool.

use std::{collections::BTreeSet, path::Path};

use assay_formats::Test;

use crate::{
    samples::{parsed, tests},
    truth::outline_of,
};

fn sample(path: &str) -> Vec<Test> {
    tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(path))
}

/// Returns the identifiers with results and variants.
fn identities(tests: &[Test]) -> BTreeSet<String> {
    let identity =
        |test: &Test| format!("{:?} {} [{}]", test.result(), test.identifier(), test.variant());
    tests.iter().map(identity).collect()
}

/// Returns the tests of another report of the run that a sample is of.
fn counterpart(path: &str) -> Vec<Test> {
    tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/counterparts").join(path))
}

fn of_counterpart(path: &str) -> BTreeSet<String> {
    counterpart(path).iter().map(Test::identifier).collect()
}

/// Returns the identifiers of the first report that the second one does not have.
fn missing(first: &BTreeSet<String>, second: &BTreeSet<String>) -> Vec<String> {
    first.difference(second).cloned().collect()
}

fn identifiers(path: &str) -> BTreeSet<String> {
    sample(path).iter().map(Test::identifier).collect()
}

#[test]
fn tests_of_pytest_are_the_same_in_all_formats() {
    let expected = identifiers("junit/pytest-reruns.xml");
    assert_eq!(expected.len(), 8);
    for path in ["ctrf/pytest.json", "allure/pytest", "nunit3/pytest-nunit.xml"] {
        assert_eq!(identifiers(path), expected, "{path}");
    }
}

#[test]
fn tests_and_projects_of_playwright_are_the_same_in_all_formats() {
    let expected = identities(&sample("junit/playwright.xml"));
    assert_eq!(expected.len(), 14);
    for path in ["ctrf/playwright.json", "playwright-json/results.json", "allure/playwright"] {
        assert_eq!(identities(&sample(path)), expected, "{path}");
    }
}

#[test]
fn tests_of_jest_are_the_same_in_junit_and_ctrf() {
    assert_eq!(identifiers("ctrf/jest.json"), identifiers("junit/jest-todo.xml"));
}

#[test]
fn tests_of_playwright_are_the_same_in_json_and_blobs() {
    let (blob, json) = (sample("playwright-blob/max-failures"), counterpart("playwright.json"));
    assert_eq!(identities(&blob), identities(&json));
    assert_eq!(blob.len(), json.len());
}

#[test]
fn tests_of_jest_are_the_same_in_junit_and_json() {
    let (json, junit) = (identifiers("jest-json/report.json"), of_counterpart("jest.xml"));
    // A test without a name has that of its suite.
    let other = ["Test suite failed to run.after.test.js", "unnamed"];
    assert_eq!(missing(&json, &junit), other);
}

#[test]
fn tests_of_vitest_are_the_same_in_junit_and_json() {
    let (json, junit) = (identifiers("vitest-json/report.json"), of_counterpart("vitest.xml"));
    assert_eq!(missing(&json, &junit), ["Test run"], "the number of failed suites");
}

#[test]
fn tests_of_pytest_are_the_same_in_junit_and_json() {
    let (json, junit) = (identifiers("pytest-json/plain.json"), of_counterpart("pytest.xml"));
    assert_eq!(json, junit);
}

#[test]
fn tests_of_mocha_are_the_same_in_ctrf_and_json() {
    let (json, ctrf) = (identifiers("mocha-json/report.json"), of_counterpart("mocha.json"));
    assert_eq!(json, ctrf);
    assert_eq!(missing(&ctrf, &identifiers("mochawesome/report.json")), Vec::<String>::new());
}

#[test]
fn tests_of_node_are_the_same_in_junit_and_tap() {
    let (junit, tap) = (sample("junit/node.xml"), sample("tap/node.tap"));
    assert_eq!(identities(&junit), identities(&tap));
}

#[test]
fn tests_of_mocha_are_the_same_in_ctrf_and_tap() {
    assert_eq!(identifiers("ctrf/mocha.json"), identifiers("tap/mocha.tap"));
}

#[test]
fn tests_of_robot_are_the_same_in_junit_and_its_own_format() {
    assert_eq!(identities(&sample("robot/output.xml")), identities(&sample("junit/robot.xml")));
}

#[test]
fn tests_of_robot_are_the_same_in_xml_and_json() {
    assert_eq!(
        identities(&sample("robot/hooks.xml")),
        identities(&sample("robot-json/output.json"))
    );
}

#[test]
fn tests_of_cucumber_are_the_same_in_json_and_messages() {
    let messages = identifiers("cucumber-messages/messages.ndjson");
    assert_eq!(messages, identifiers("cucumber-json/cucumber.json"));
    // Scenarios in rules and outlines have other names in the JUnit report.
    let junit = identifiers("junit/cucumber.xml");
    assert_eq!(junit.intersection(&messages).count(), 2);
}

#[test]
fn tests_of_behave_are_the_same_in_junit_and_json() {
    let (junit, json) = (sample("junit/behave.xml"), sample("cucumber-json/behave.json"));
    assert_eq!(identities(&junit), identities(&json));
}

#[test]
fn tests_of_go_are_the_same_in_junit_and_json() {
    let (junit, json) = (identifiers("junit/gotestsum.xml"), identifiers("go-test/shop.json"));
    assert!(junit.is_subset(&json), "{junit:#?} {json:#?}");
}

#[test]
fn tests_of_junit_are_the_same_in_its_xml_and_open_test_reporting() {
    let names = ["adds()", "pays()", "takes(String)[1]", "takes(String)[2]", "prints()", "ships()"];
    let case = |name: &&str| format!("<testcase name='{name}' classname='shop.CartTest'/>");
    let cases: String = names.iter().map(case).collect();
    let junit = parsed(&format!("<testsuite name='JUnit Jupiter'>{cases}</testsuite>"));
    let junit = junit.iter().map(Test::identifier).collect();
    let other = ["shop.ClosedTest", "shop.PayTest", "shop.SlowTest.hangs()"];
    assert_eq!(missing(&identifiers("open-test-reporting/events.xml"), &junit), other);
}

#[test]
fn tests_of_merged_runs_are_not_attempts() {
    let pytest = |tests: &str| format!("<testsuite name='pytest'>{tests}</testsuite>");
    let gradle = |tests: &str| {
        format!(
            "<testsuite name='c' tests='1' skipped='0' failures='0' errors='0' timestamp='x' \
             hostname='h' time='1'>{tests}</testsuite>"
        )
    };
    let failed = "<testcase classname='c' name='a'><failure/></testcase>";
    let passed = "<testcase classname='c' name='a'/>";
    for (suites, expected) in [
        ([pytest(passed), pytest(passed)], ["Passed c.a", "Passed c.a"]),
        ([pytest(failed), pytest(passed)], ["Failed c.a", "Passed c.a"]),
        (
            [pytest(&[failed, passed].concat()), pytest(failed)],
            ["Failed > Passed c.a", "Failed c.a"],
        ),
        ([gradle(failed), gradle(passed)], ["Failed c.a", "Passed c.a"]),
    ] {
        let file = format!("<testsuites tests='2'>{}</testsuites>", suites.concat());
        assert_eq!(outline_of(&file), expected, "{file}");
    }
}

#[test]
fn repeated_tests_of_go_are_attempts_if_gotestsum_wrote_them() {
    for (host, expected) in [
        ("", &["Failed > Passed shop.TestPays"][..]),
        // `go test -count=2`, as go-junit-report writes it.
        ("hostname='ci'", &["Failed shop.TestPays", "Passed shop.TestPays"][..]),
    ] {
        let file = format!(
            "<testsuites><testsuite name='shop' tests='2' failures='1' {host}><properties>\
             <property name='go.version' value='go1.22.1 linux/amd64'/></properties>\
             <testcase classname='shop' name='TestPays'><failure message='Failed'/></testcase>\
             <testcase classname='shop' name='TestPays'/></testsuite></testsuites>"
        );
        assert_eq!(outline_of(&file), expected, "{file}");
    }
}
