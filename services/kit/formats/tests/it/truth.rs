//! Reports of real tools that were once read wrongly.

mod claims;
mod cucumber_rs;

use std::path::Path;

use assay_formats::Test;
use assay_proto::name_of;

use crate::samples::{parsed, tests};

fn sample(path: &str) -> Vec<Test> {
    tests(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(path))
}

/// Returns the results of all attempts, the identifier and the parameters of each test.
pub(crate) fn outline(tests: &[Test]) -> Vec<String> {
    let line = |test: &Test| {
        let attempts: Vec<_> =
            test.attempts.iter().map(|attempt| name_of(attempt.result)).collect();
        let variant = test.variant();
        let variant = if variant.is_empty() { variant } else { format!(" [{variant}]") };
        format!("{} {}{variant}", attempts.join(" > "), test.identifier())
    };
    tests.iter().map(line).collect()
}

/// Returns the same for a report.
pub(crate) fn outline_of(report: &(impl AsRef<[u8]> + ?Sized)) -> Vec<String> {
    outline(&parsed(report))
}

/// Returns the messages of the problems of the test with this identifier.
fn messages(tests: &[Test], identifier: &str) -> String {
    let test = tests.iter().find(|test| test.identifier() == identifier);
    let test = test.unwrap_or_else(|| panic!("no {identifier}: {:#?}", outline(tests)));
    let problems = test.attempts.iter().flat_map(|attempt| &attempt.problems);
    problems.map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn failures_outside_of_tests_are_entries_with_their_message() {
    for (path, identifier, message) in [
        ("junit/suite-error.xml", "shop.StockTest", "No connection to stock database"),
        ("junit/unittest-hooks.xml", "test_u.Broken.setUpClass", "no db"),
        ("trx/crash.trx", "Test run", "Test host process crashed"),
        ("xunit/version-3.xml", "Shop.dll.Shop.Fixture", "cleanup broke"),
        ("playwright-json/global-error.json", "Test run", "server did not stop"),
        ("cucumber-messages/after-all.ndjson", "AfterAll", "Error: AfterAll"),
        ("tap/bats-hooks.tap", "teardown_file failed", ""),
    ] {
        let found = messages(&sample(path), identifier);
        assert!(found.contains(message), "{path}: {found}");
    }
}

#[test]
fn a_failed_teardown_of_a_suite_fails_the_tests_that_robot_framework_counts() {
    let tests = sample("robot/suite-teardown.xml");
    assert_eq!(outline(&tests), ["Failed Shop.Adds", "Failed Shop.Pays"]);
    assert!(messages(&tests, "Shop.Adds").contains("database still open"));
}

#[test]
fn a_skipped_teardown_of_a_suite_skips_the_tests_that_robot_framework_counts() {
    let xml = "<robot><suite name='Shop'>\
        <test name='Adds'><status status='PASS'/></test>\
        <test name='Pays'><status status='FAIL'>200 == 401</status></test>\
        <test name='Ships'><status status='SKIP'>Skipped in parent suite teardown:\nno database</status></test>\
        <status status='SKIP'>Skipped in suite teardown:\nno database</status></suite>\
        <statistics><total><stat pass='0' fail='0' skip='3'>All Tests</stat></total></statistics></robot>";
    let json = r#"{"generator": "Robot", "rpa": false, "suite": {"tests": [
        {"name": "Adds", "status": "PASS"},
        {"name": "Pays", "status": "FAIL", "message": "200 == 401"},
        {"name": "Ships", "status": "SKIP", "message": "Skipped in parent suite teardown:\nno database"}],
        "name": "Shop", "status": "SKIP", "message": "Skipped in suite teardown:\nno database"},
        "statistics": {"total": {"pass": 0, "fail": 0, "skip": 3}}}"#;
    for file in [xml, json] {
        let tests = parsed(file);
        let expected = ["Canceled Shop.Adds", "Canceled Shop.Pays", "Canceled Shop.Ships"];
        assert_eq!(outline(&tests), expected, "{file}");
        let reasons: Vec<&str> = tests.iter().map(|test| &*test.attempts[0].reason).collect();
        let reason = "Skipped in parent suite teardown:\nno database";
        let of_failed = format!("{reason}\n\n200 == 401");
        assert_eq!(reasons, [reason, of_failed.as_str(), reason], "{file}");
    }
}

#[test]
fn reruns_are_attempts_of_one_instance() {
    for (path, line) in [
        ("junit/gotestsum-rerun.xml", "Failed > Passed example.org/shop.TestFlaky"),
        ("junit/pytest-xdist-reruns.xml", "Failed > Passed test_flaky.test_flaky[6]"),
        ("junit/pytest-xdist-reruns.xml", "Failed > Failed test_flaky.test_always"),
        ("junit/surefire-reruns.xml", "Failed > Passed shop.ShopTest.isFlaky"),
        ("testng/retries.xml", "Failed > Passed shop.CartTest.pays"),
        ("testng/retry-analyzer.xml", "Canceled > Passed shop.ShopTest.isFlaky"),
        ("testng/parallel.xml", "Canceled > Passed shop.ShopTest.isFlaky"),
        ("testng/parallel.xml", "Canceled > Canceled > Failed shop.ShopTest.staysBroken"),
        ("cucumber-json/behave-retries.json", "Failed > Passed shop.A shop <&> \"more\".Is flaky"),
        ("ctrf/flaky.json", "Failed > Passed shop > CartTest.pays"),
    ] {
        let found = outline(&sample(path));
        assert!(found.iter().any(|found| found == line), "{path}: {line} is not in {found:#?}");
    }
    let reruns = sample("go-test/reruns.json");
    assert_eq!(reruns.iter().filter(|test| test.is_flaky()).count(), 1);
}

#[test]
fn a_repeated_test_that_failed_stays_failed_unless_its_tool_retries_tests() {
    let failed = "<testcase classname='c' name='a'><failure/></testcase>";
    let passed = "<testcase classname='c' name='a'/>";
    for (start, expected) in [
        ("<testsuite name='s'>", vec!["Failed c.a", "Passed c.a"]),
        (
            // As Gradle writes them.
            "<testsuite name='s' tests='2' skipped='0' failures='1' errors='0' timestamp='x' \
             hostname='h' time='1'><properties/>",
            vec!["Failed > Passed c.a"],
        ),
    ] {
        let file = format!("{start}{failed}{passed}</testsuite>");
        assert_eq!(outline_of(&file), expected);
    }
}

#[test]
fn tests_of_go_pass_also_when_their_output_does_not_end_with_a_line() {
    let found = outline(&sample("go-test/no-newline.json"));
    let aborted: Vec<_> = found.iter().filter(|line| line.starts_with("Aborted")).collect();
    assert_eq!(aborted, ["Aborted example.org/shop/exit.TestExits"]);
    assert!(found.contains(&"Passed example.org/shop/pay.TestParallel/0".to_owned()));
}

#[test]
fn different_tests_have_different_cases() {
    for path in ["junit/no-class.xml", "junit/odd-names.xml", "tap/bats.tap"] {
        let tests = sample(path);
        let mut identifiers: Vec<String> = tests.iter().map(Test::identifier).collect();
        identifiers.sort();
        identifiers.dedup();
        assert_eq!(identifiers.len(), tests.len(), "{path}: {identifiers:#?}");
    }
    let expected = [
        "Failed cart.js: Cart adds [browser=firefox]",
        "Passed cart.js: Cart adds [browser=chrome]",
    ];
    assert_eq!(outline(&sample("allure/browsers")), expected);
    assert!(outline(&sample("tap/bats.tap"))[0].ends_with(" adds"));
}

#[test]
fn durations_and_times_are_read_as_their_tools_mean_them() {
    let seconds = |path| sample(path).iter().map(|test| test.seconds).collect::<Vec<_>>();
    assert_eq!(seconds("junit/decimal-comma.xml"), [0.16, 0.007, 12.345]);
    assert_eq!(seconds("junit/units.xml"), [0.000_080_803, 0.0015, 2.25, 63.5]);
    let starts = |path| {
        let start = |test: &Test| test.start.map(|start| start.0.to_rfc3339());
        sample(path).iter().map(start).collect::<Vec<_>>()
    };
    assert!(starts("junit/timestamps.xml").iter().all(Option::is_some));
    assert_eq!(starts("junit/unittest-hooks.xml"), [None, None, None], "year 1 is unknown");
    // pytest-json-report states the end of the run and its duration.
    let of_run = starts("pytest-json/plain.json").into_iter().flatten().next().unwrap();
    assert!(of_run.starts_with("2026-11-26T21:45:02.909"), "{of_run}");
    let of_assembly = starts("xunit/version-3.xml")[0].clone();
    assert_eq!(of_assembly.as_deref(), Some("2026-11-20T09:00:00+00:00"));
}

#[test]
fn tests_that_did_not_run_are_not_passed() {
    let found = outline(&sample("cucumber-json/behave-hooks.json"));
    assert!(found.contains(&"Canceled cart.Cart.skipped".to_owned()), "{found:#?}");
    assert!(found.contains(&"Error cart.Cart.before fails".to_owned()), "{found:#?}");
    let steps = r#"[{"elements": [{"name": "adds", "steps": [{"name": "a", "result": {"status": "passed"}},
        {"name": "b"}]}], "name": "f"}]"#;
    assert_eq!(outline_of(steps), ["Aborted f.adds"]);
}

#[test]
fn a_suite_of_nunit_that_was_cancelled_is_aborted() {
    let file = "<test-run result='Failed' total='1' failed='0'>\
        <test-suite name='a' fullname='a' result='Failed' label='Cancelled'>\
        <failure><message>Test run cancelled by user</message></failure>\
        <test-case name='adds' classname='c' result='Passed'/></test-suite></test-run>";
    assert_eq!(outline_of(file), ["Passed c.adds", "Aborted a"]);
}

#[test]
fn custom_attributes_of_testng_are_no_parameters() {
    let file = "<testng-results total='1' failed='0'><suite name='s'><test name='t'><class name='c'>\
        <test-method name='adds' status='PASS'>\
        <params><param index='0'><value>1</value></param></params>\
        <custom-attributes><custom-attribute><name value='owner'/><value>[Ann]</value>\
        </custom-attribute></custom-attributes></test-method></class></test></suite></testng-results>";
    assert_eq!(outline_of(file), ["Passed c.adds [1=1]"]);
}

#[test]
fn outputs_of_suites_and_parts_of_reasons_are_kept() {
    let output = &sample("junit/bazel-timeout.xml")[0].attempts[0].output;
    assert!(output.contains("waiting for the gateway"), "{output}");
    // A package that another one needs cannot be built.
    let build = "{\"ImportPath\":\"p/dep\",\"Action\":\"build-output\",\"Output\":\"dep.go:3: undefined: x\\n\"}\n\
        {\"ImportPath\":\"p/dep\",\"Action\":\"build-fail\"}\n{\"Action\":\"start\",\"Package\":\"p\"}\n\
        {\"Action\":\"fail\",\"Package\":\"p\",\"FailedBuild\":\"p/dep\"}\n";
    assert!(messages(&parsed(build), "p.TestMain").contains("undefined: x"));
    let odd = sample("junit/pytest-odd.xml");
    let skipped = odd.iter().find(|test| test.name == "test_skip").unwrap();
    assert!(skipped.attempts[0].reason.starts_with("no printer\n"));
}

#[test]
fn characters_that_are_not_text_cost_no_test() {
    let names: Vec<_> =
        sample("junit/surrogates.xml").iter().map(|test| test.name.clone()).collect();
    assert_eq!(names, ["pays with 😀", "pays with 😁"]);
    let problem = |path: &str| sample(path)[0].attempts[0].problems[0].clone();
    assert_eq!(
        problem("junit/character-references.xml").text,
        "\u{1b}[31mred\u{1b}[0m but was \u{fffd}"
    );
    assert!(problem("junit/invalid-utf8.xml").text.contains('\u{fffd}'));
    assert!(problem("ctrf/lone-surrogate.json").message.contains("\u{fffd}… (truncated)"));
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    for text in [
        "1..1\nok 1 - adds\n",
        r#"{"reportFormat": "CTRF", "results": {"tool": {"name": "t"},
        "tests": [{"name": "adds", "status": "passed"}]}}"#,
    ] {
        assert_eq!(outline_of(&wide(text)), ["Passed adds"]);
    }
}
