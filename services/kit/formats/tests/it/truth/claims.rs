//! Numbers, plans and exit codes of reports that contradict their tests.

use assay_formats::{Collected, read};

use super::{messages, outline, sample};

#[test]
fn announced_tests_that_are_missing_are_aborted() {
    for (path, identifier, message) in [
        ("tap/missing.tap", "Test run", "4 of 7 tests are missing"),
        ("tap/ava-fail-fast.tap", "Test run", "missing"),
        ("junit/karma.xml", "Chrome Headless 148.0.0.0 (Linux 0.0.0)", "2 of 18 tests are missing"),
        ("junit/vitest-bail.xml", "shop.test.ts.hangs", "did not run"),
        ("playwright-json/max-failures.json", "shop.spec.ts.retries › is flaky", "did not finish"),
    ] {
        let found = messages(&sample(path), identifier);
        assert!(found.contains(message), "{path}: {found}");
    }
    let skipped = &sample("tap/skip-all.tap")[0];
    assert_eq!(skipped.attempts[0].reason, "no database");
}

#[test]
fn numbers_that_contradict_a_report_fail_it() {
    for (file, expected) in [
        (
            "<testsuite name='shop' tests='3'><testcase name='adds'/></testsuite>",
            ["Passed shop.adds", "Aborted shop"],
        ),
        (
            "<testsuites failures='1'><testsuite name='shop'><testcase name='adds'/></testsuite>\
             </testsuites>",
            ["Passed shop.adds", "Error Test run"],
        ),
        (
            // The test that is not listed may be the skipped one, or the failed one.
            "<testsuite name='shop' tests='2' failures='1' skipped='1'><testcase classname='c' name='adds'/>\
             </testsuite>",
            ["Passed c.adds", "Error shop"],
        ),
        (
            "<testsuite name='shop' tests='1' errors='1'><testcase classname='c' name='adds'/>\
             </testsuite>",
            ["Passed c.adds", "Error shop"],
        ),
        (
            "<test-run result='Failed' total='1' failed='1'><test-suite name='a'>\
             <test-case name='adds' classname='c' result='Passed'/></test-suite></test-run>",
            ["Passed c.adds", "Error Test run"],
        ),
        (
            "<assemblies><assembly name='a.dll' total='2' failed='0'><collection>\
             <test name='c.adds' type='c' result='Pass'/></collection></assembly></assemblies>",
            ["Passed c.adds", "Aborted a.dll"],
        ),
        (
            "<testng-results total='1' failed='1'><suite name='s'><test name='t'><class name='c'>\
             <test-method name='adds' status='PASS'/></class></test></suite></testng-results>",
            ["Passed c.adds", "Error Test run"],
        ),
        (
            "<robot><suite name='s'><test name='adds'><status status='PASS'/></test></suite>\
             <statistics><total><stat pass='1' fail='1'>All Tests</stat></total></statistics></robot>",
            ["Passed s.adds", "Aborted Test run"],
        ),
        (
            "<TestRun><Results><UnitTestResult testName='adds' outcome='Passed'/></Results>\
             <ResultSummary outcome='Failed'><Counters total='1' failed='0'/></ResultSummary>\
             </TestRun>",
            ["Passed adds", "Error Test run"],
        ),
        (
            r#"{"reportFormat": "CTRF", "results": {"tool": {"name": "t"},
               "summary": {"tests": 1, "failed": 1}, "tests": [{"name": "adds", "status": "passed"}]}}"#,
            ["Passed adds", "Error Test run"],
        ),
        (
            r#"{"config": {"rootDir": "/"}, "suites": [{"title": "a.js", "specs": [{"title": "adds",
               "tests": [{"status": "expected", "expectedStatus": "passed",
                          "results": [{"status": "passed"}]}]}]}],
               "stats": {"expected": 1, "unexpected": 1}}"#,
            ["Passed a.js.adds", "Aborted Test run"],
        ),
        (
            "{\"Action\":\"run\",\"Package\":\"p\",\"Test\":\"TestA\"}\n\
             {\"Action\":\"pass\",\"Package\":\"p\",\"Test\":\"TestA\"}\n",
            ["Passed p.TestA", "Aborted p.TestMain"],
        ),
    ] {
        let mut tests = Collected::default();
        read(file.as_bytes(), &mut tests).unwrap();
        assert_eq!(outline(&tests.into_tests()), expected, "{file}");
    }
}

#[test]
fn exit_codes_and_numbers_that_contradict_a_report_fail_it() {
    for (file, expected) in [
        (
            "<test-results total='2' failures='0'><test-suite type='TestFixture' name='c'><results>\
             <test-case name='c.adds' result='Success'/></results></test-suite></test-results>",
            ["Passed c.adds", "Aborted Test run"],
        ),
        (
            r#"{"generator": "Robot", "rpa": false, "suite": {"name": "s", "tests": [{"name": "adds",
               "status": "PASS"}]}, "statistics": {"total": {"pass": 1, "fail": 1}}}"#,
            ["Passed s.adds", "Aborted Test run"],
        ),
        (
            r#"{"numTotalTestSuites": 1, "numTotalTests": 1, "wasInterrupted": false, "success": false,
               "testResults": [{"name": "a.js", "status": "passed", "assertionResults": [
               {"fullName": "adds", "title": "adds", "status": "passed"}]}]}"#,
            ["Passed adds.adds", "Error Test run"],
        ),
        (
            r#"{"numTotalTestSuites": 1, "numTotalTests": 1, "numFailedTestSuites": 1, "success": false,
               "testResults": [{"assertionResults": [{"title": "adds", "status": "passed"}],
               "status": "failed", "name": "a.ts"}]}"#,
            ["Passed a.ts.adds", "Error a.ts.a.ts"],
        ),
        (
            r#"{"stats": {"suites": 1, "passes": 1, "failures": 1}, "tests": [], "passes": [
               {"fullTitle": "adds"}]}"#,
            ["Passed adds", "Aborted Test run"],
        ),
        (
            r#"{"stats": {"suites": 1, "tests": 1, "failures": 0, "other": 1}, "results": [{"tests": [
               {"fullTitle": "adds", "state": "passed"}]}]}"#,
            ["Passed adds", "Error Test run"],
        ),
        (
            r#"{"created": 1, "exitcode": 1, "summary": {"total": 1}, "tests": [
               {"nodeid": "a.py::adds", "outcome": "passed"}]}"#,
            ["Passed a.adds", "Error Test run"],
        ),
        (
            "<events xmlns='https://schemas.opentest4j.org/reporting/events/0.2.0'>\
             <started id='1' name='s'/><started id='2' name='adds' parentId='1'/>\
             <finished id='2'><result status='SUCCESSFUL'/></finished></events>",
            ["Passed s.adds", "Aborted Test run"],
        ),
    ] {
        let mut tests = Collected::default();
        read(file.as_bytes(), &mut tests).unwrap();
        assert_eq!(outline(&tests.into_tests()), expected, "{file}");
    }
}

#[test]
fn skipped_tests_that_are_counted_and_not_listed_are_a_note() {
    let file = "<testsuites name='Mocha Tests' time='1' tests='3' failures='0' skipped='2'>\
        <testsuite name='shop' tests='3'><testcase name='adds' classname='c'/></testsuite></testsuites>";
    let mut tests = Collected::default();
    let notes = read(file.as_bytes(), &mut tests).unwrap();
    assert_eq!(outline(&tests.into_tests()), ["Passed c.adds"]);
    assert_eq!(notes, ["2 skipped tests are counted, but not listed."]);
}
