//! Runs that their tools call failed, although every test that they list seems to have passed.

use std::{collections::BTreeMap, io::Read};

use assay_formats::{Collected, allure::Files, archive};
use assay_proto::Fault;

use crate::{
    samples::parsed,
    truth::{outline, outline_of},
};

/// Files with these names, each of which is an empty object.
struct Named<'n>(&'n [&'n str]);

impl Files for Named<'_> {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        self.0.iter().map(|name| ((*name).to_owned(), 2)).collect()
    }

    fn open(&mut self, _: &str) -> Result<Box<dyn Read + '_>, Fault> {
        Ok(Box::new(&b"{}"[..]))
    }
}

#[test]
fn hooks_of_cucumber_fail_their_scenario_wherever_they_are() {
    let failed = r#"{"result": {"status": "failed", "error_message": "no database"}}"#;
    let step = |hooks: &str, status: &str| {
        format!(
            r#"{{"keyword": "When ", "name": "pays", "result": {{"status": "{status}"}}{hooks}}}"#
        )
    };
    let passed = step("", "passed");
    for elements in [
        // Hooks of a step, as Cucumber for Java and Ruby write them.
        format!(
            r#"{{"type": "scenario", "name": "pays", "steps": [{}]}}"#,
            step(&format!(r#", "after": [{failed}]"#), "passed")
        ),
        format!(
            r#"{{"type": "scenario", "name": "pays", "steps": [{}]}}"#,
            step(&format!(r#", "before": [{failed}]"#), "skipped")
        ),
        // A hook in front of a background, and one around a scenario, as Cucumber for Ruby writes them.
        format!(
            r#"{{"type": "background", "before": [{failed}], "steps": [{}]}},
               {{"type": "scenario", "name": "pays", "steps": [{}]}}"#,
            step("", "skipped"),
            step("", "skipped")
        ),
        format!(
            r#"{{"type": "scenario", "name": "pays", "steps": [{passed}], "around": [{failed}]}}"#
        ),
        // More steps than are kept.
        format!(
            r#"{{"type": "scenario", "name": "pays", "steps": [{}{}]}}"#,
            format!("{passed}, ").repeat(600),
            step("", "failed")
        ),
    ] {
        let file =
            format!(r#"[{{"uri": "shop.feature", "name": "Shop", "elements": [{elements}]}}]"#);
        assert_eq!(outline_of(&file), ["Failed Shop.pays"], "{elements:.300}");
    }
}

#[test]
fn attempts_of_cucumber_for_ruby_are_attempts() {
    let scenario = |step: &str, status: &str| {
        format!(
            r#"{{"type": "scenario", "id": "shop;pays", "name": "pays", "line": 3,
               "steps": [{{"keyword": "When ", "name": "{step}", "result": {{"status": "{status}"}}}}]}}"#
        )
    };
    // The last one is another row of examples.
    let elements = [("pays 1", "failed"), ("pays 1", "passed"), ("pays 2", "failed")];
    let elements = elements.map(|(step, status)| scenario(step, status));
    let elements = elements.join(", ");
    let file = format!(r#"[{{"uri": "shop.feature", "name": "Shop", "elements": [{elements}]}}]"#);
    assert_eq!(outline_of(&file), ["Failed > Passed Shop.pays", "Failed Shop.pays"]);
}

#[test]
fn attachments_of_hooks_of_steps_are_kept() {
    let file = r#"[{"uri": "shop.feature", "name": "Shop", "elements": [{"type": "scenario", "name": "pays",
        "steps": [{"name": "pays", "result": {"status": "passed"}, "after": [{"result": {"status": "passed"},
        "embeddings": [{"name": "shot", "mime_type": "image/png", "data": "aGk="}]}]}]}]}]"#;
    let attempt = &parsed(file)[0].attempts[0];
    assert_eq!((attempt.steps.len(), attempt.attachments[0].name.as_str()), (1, "shot"));
}

#[test]
fn a_flaky_test_does_not_explain_the_failure_of_its_run() {
    for (file, expected) in [
        (
            r#"{"created": 1, "exitcode": 3, "summary": {"total": 1}, "tests": [
               {"nodeid": "a.py::adds", "outcome": "rerun"}]}"#,
            ["Failed > Passed a.adds", "Error Test run"],
        ),
        (
            r#"{"numTotalTestSuites": 1, "numTotalTests": 1, "wasInterrupted": false, "success": false,
               "testResults": [{"name": "a.js", "status": "passed", "assertionResults": [
               {"fullName": "adds", "title": "adds", "status": "passed", "invocations": 2}]}]}"#,
            ["Failed > Passed adds.adds", "Error Test run"],
        ),
        (
            "{\"meta\": {\"protocolVersion\": \"27.0.0\"}}\n\
             {\"pickle\": {\"id\": \"1\", \"uri\": \"shop.feature\", \"name\": \"adds\", \"steps\": []}}\n\
             {\"testCase\": {\"id\": \"2\", \"pickleId\": \"1\", \"testSteps\": [{\"id\": \"3\"}]}}\n\
             {\"testCaseStarted\": {\"id\": \"4\", \"testCaseId\": \"2\"}}\n\
             {\"testStepFinished\": {\"testCaseStartedId\": \"4\", \"testStepId\": \"3\", \
             \"testStepResult\": {\"status\": \"FAILED\"}}}\n\
             {\"testCaseFinished\": {\"testCaseStartedId\": \"4\", \"willBeRetried\": true}}\n\
             {\"testCaseStarted\": {\"id\": \"5\", \"testCaseId\": \"2\"}}\n\
             {\"testCaseFinished\": {\"testCaseStartedId\": \"5\"}}\n\
             {\"testRunFinished\": {\"success\": false, \"message\": \"AfterAll failed\"}}\n",
            ["Failed > Passed shop.feature.adds", "Error Test run"],
        ),
    ] {
        assert_eq!(outline_of(file), expected, "{file}");
    }
}

#[test]
fn skipped_attempts_of_playwright_do_not_count_beside_others() {
    let spec = |title: &str, expected: &str, status: &str, results: [&str; 2]| {
        let [first, second] = results;
        format!(
            r#"{{"title": "{title}", "tests": [{{"expectedStatus": "{expected}", "status": "{status}",
               "results": [{{"status": "{first}"}}, {{"status": "{second}"}}]}}]}}"#
        )
    };
    let specs = [
        spec("adds", "passed", "unexpected", ["failed", "skipped"]),
        spec("pays", "passed", "expected", ["skipped", "passed"]),
        spec("ships", "passed", "skipped", ["skipped", "skipped"]),
        // It skips itself when it is retried.
        spec("bills", "skipped", "flaky", ["failed", "skipped"]),
    ];
    let file = format!(
        r#"{{"config": {{"rootDir": "/"}}, "suites": [{{"title": "a.js", "specs": [{}]}}],
           "stats": {{"expected": 1, "skipped": 1, "unexpected": 1, "flaky": 1}}}}"#,
        specs.join(", ")
    );
    let expected = [
        "Failed a.js.adds",
        "Passed a.js.pays",
        "Canceled > Canceled a.js.ships",
        "Failed > Canceled a.js.bills",
    ];
    assert_eq!(outline_of(&file), expected);
    let ctrf = r#"{"reportFormat": "CTRF", "results": {"tool": {"name": "playwright"}, "tests": [
        {"name": "pays", "status": "passed", "retries": 1, "retryAttempts": [{"status": "skipped"}]}]}}"#;
    assert_eq!(outline_of(ctrf), ["Passed pays"]);
}

#[test]
fn every_repetition_of_a_test_of_playwright_is_an_instance() {
    let passed = r#"{"expectedStatus": "passed", "results": [{"status": "passed"}]}"#;
    let failed = r#"{"expectedStatus": "passed", "results": [{"status": "failed"}]}"#;
    let file = format!(
        r#"{{"config": {{"rootDir": "/"}}, "suites": [{{"title": "a.js", "specs": [
           {{"title": "adds", "tests": [{}{failed}]}}]}}],
           "stats": {{"expected": 199, "unexpected": 1}}}}"#,
        format!("{passed}, ").repeat(199)
    );
    let found = outline_of(&file);
    assert_eq!((found.len(), found[199].as_str()), (200, "Failed a.js.adds"));
}

#[test]
fn a_suite_of_ginkgo_that_did_not_succeed_fails() {
    let suite = |succeeded: &str, reason: &str, tests: &str| {
        format!(
            "<testsuites tests='1' disabled='1' errors='0' failures='0' time='0.1'>\
             <testsuite name='Shop' package='/w/shop' tests='1' disabled='1' skipped='0' errors='0' \
             failures='0' time='0.1' timestamp='2026-11-20T10:14:04'><properties>\
             <property name='SuiteSucceeded' value='{succeeded}'></property>\
             <property name='SuiteHasProgrammaticFocus' value='false'></property>\
             <property name='SpecialSuiteFailureReason' value='{reason}'></property>\
             </properties>{tests}</testsuite></testsuites>"
        )
    };
    let pending = "<testcase name='[It] pays' classname='Shop' status='pending' time='0'>\
        <skipped message='pending'></skipped></testcase>";
    let failed = "<testcase name='[It] pays' classname='Shop' status='failed' time='0'>\
        <failure message='no' type='failed'></failure></testcase>";
    let reason = "Detected pending specs and --fail-on-pending is set";
    assert_eq!(
        outline_of(&suite("false", reason, pending)),
        ["Canceled Shop.[It] pays", "Error Shop"]
    );
    assert_eq!(outline_of(&suite("true", "", pending)), ["Canceled Shop.[It] pays"]);
    assert_eq!(outline_of(&suite("false", "", failed)), ["Failed Shop.[It] pays"]);
}

#[test]
fn attempts_in_the_timeline_of_ginkgo_are_attempts() {
    let spec = |status: &str, element: &str| {
        format!(
            "<testsuites tests='1' disabled='0' errors='0' failures='0' time='0.1'><testsuite name='Shop'>\
             <testcase name='[It] pays' classname='Shop' status='{status}' time='0.1'>{element}<system-err>\
             &gt; Enter [It] pays\n[FAILED] no\n\nAttempt #1 Failed.  Retrying ↺ @ 11/20/26 10:14:04.123\n\n\
             &gt; Enter [It] pays\nAttempt #1 failed. Retrying\n</system-err></testcase></testsuite></testsuites>"
        )
    };
    assert_eq!(outline_of(&spec("passed", "")), ["Failed > Passed Shop.[It] pays"]);
    let failure = "<failure message='no' type='failed'></failure>";
    assert_eq!(outline_of(&spec("failed", failure)), ["Failed > Failed Shop.[It] pays"]);
}

#[test]
fn tests_of_junit_with_a_status_that_is_not_passed_are_not_passed() {
    for (attributes, expected) in [
        // Maestro lists flows that were canceled, without another element.
        ("status='SUCCESS'", "Passed pays.pays"),
        ("status='CANCELED'", "Canceled pays.pays"),
        ("status='STOPPED'", "Canceled pays.pays"),
        ("status='ERROR'", "Error pays.pays"),
        ("status='failed' result='completed'", "Failed pays.pays"),
        ("status='run' result='completed'", "Passed pays.pays"),
        ("status='notrun' result='suppressed'", "Canceled pays.pays"),
    ] {
        let file = format!(
            "<testsuites><testsuite name='Test Suite' tests='1' failures='0'>\
             <testcase id='pays' name='pays' classname='pays' {attributes}/></testsuite></testsuites>"
        );
        assert_eq!(outline_of(&file), [expected], "{attributes}");
    }
}

#[test]
fn a_warning_of_phpunit_instead_of_tests_fails() {
    let test = |kind: &str| {
        format!(
            "<testsuites><testsuite name='CartTest' tests='1' assertions='0' errors='0' warnings='1' \
             failures='0' skipped='0' time='0.1'><testcase name='Warning' class='CartTest' \
             classname='CartTest' assertions='0' time='0.1'><warning type='{kind}'>The data provider \
             specified for CartTest::testPays is invalid.</warning></testcase></testsuite></testsuites>"
        )
    };
    let tests = parsed(&test("PHPUnit\\Framework\\Warning"));
    assert_eq!(outline(&tests), ["Failed CartTest.Warning"]);
    assert!(tests[0].attempts[0].problems[0].text.contains("data provider"));
    assert_eq!(outline_of(&test("Deprecation")), ["Passed CartTest.Warning"]);
    // PHPUnit 8 and 9 do not fail because of tests that have run, for instance with a deprecated assertion.
    let ran = test("PHPUnit\\Framework\\Warning").replace("name='Warning'", "name='testPays'");
    assert_eq!(outline_of(&ran), ["Passed CartTest.testPays"]);
}

#[test]
fn a_result_of_visual_studio_without_outcome_is_an_error() {
    let file = "<TestRun><Results><UnitTestResult testName='adds' outcome='Passed'/>\
        <UnitTestResult testName='pays'/><UnitTestResult testName='ships' outcome='NotExecuted'/>\
        </Results></TestRun>";
    assert_eq!(outline_of(file), ["Passed adds", "Error pays", "Canceled ships"]);
}

#[test]
fn a_crash_of_the_test_host_fails_the_junit_report_of_dotnet() {
    let suite = |errors: &str| {
        format!(
            "<testsuites><testsuite name='Shop.dll' tests='1' skipped='0' failures='0' errors='0' time='0.1' \
             timestamp='2026-11-20T10:14:04' hostname='h' id='0' package='Shop.dll'><properties/>\
             <testcase classname='Shop.Cart' name='Adds' time='0.1'/><system-out/>\
             <system-err>{errors}</system-err></testsuite></testsuites>"
        )
    };
    let crash = "Warning - slow\nError - The active test run was aborted. Reason: Test host process crashed : \
        Stack overflow.\n   at Shop.Cart.Adds()\n";
    let tests = parsed(&suite(crash));
    assert_eq!(outline(&tests), ["Passed Shop.Cart.Adds", "Aborted Shop.dll"]);
    let message = &tests[1].attempts[0].problems[0].message;
    assert!(message.contains("Test host process crashed : Stack overflow."), "{message}");
    assert_eq!(outline_of(&suite("Warning - slow\n")), ["Passed Shop.Cart.Adds"]);
}

#[test]
fn an_archive_of_other_reports_is_refused_with_a_remedy() {
    let notes = |names: &[&str]| archive::read(&mut Named(names), &mut Collected::default());
    let fault = notes(&["TEST-shop.xml", "executor.json"]).unwrap_err().to_string();
    assert!(fault.contains("neither Allure results") && fault.contains("send"), "{fault}");
    let history = ["1-result.json", "history.json", "history-trend.json", "retry-trend.json"];
    for names in [&["1-result.json", "2-attachment.xml"][..], &history, &["executor.json"], &[]] {
        assert!(notes(names).unwrap().is_empty(), "{names:?}");
    }
    let notes = notes(&["1-result.json", "junit.xml", "shot.png"]).unwrap();
    assert!(notes[0].contains("not read") && notes[0].ends_with(": junit.xml."), "{notes:?}");
}
