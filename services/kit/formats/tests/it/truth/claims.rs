//! Numbers, plans and exit codes of reports that contradict their tests.

use assay_formats::{Collected, read};

use super::{messages, outline, outline_of, sample};

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
        assert_eq!(outline_of(file), expected, "{file}");
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
        assert_eq!(outline_of(file), expected, "{file}");
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

#[test]
fn doctest_counts_assertions_whatever_the_program_is_called() {
    let cases = "<testcase classname='shop.cpp' name='adds' time='0.1' status='run'/>\
        <testcase classname='shop.cpp' name='pays' time='0.1' status='run'/>";
    let of_doctest = "name='shop' errors='0' failures='0' tests='16'";
    for (attributes, is_doctest) in [
        (of_doctest, true),
        (&format!("{of_doctest} time='0.2' timestamp='2026-11-20T11:00:00Z'"), true),
        (&format!("{of_doctest} doctest_version='2.4.11'"), true),
        (&format!("{of_doctest} hostname='ci'"), false),
        ("name='shop' tests='16' errors='0' failures='0'", false),
    ] {
        let file = format!("<testsuites><testsuite {attributes}>{cases}</testsuite></testsuites>");
        let found = outline_of(&file);
        assert_eq!(found[..2], ["Passed shop.cpp.adds", "Passed shop.cpp.pays"]);
        assert_eq!(found.len(), if is_doctest { 2 } else { 3 }, "{attributes}: {found:?}");
    }
}

#[test]
fn qt_test_counts_warnings_as_errors_and_blacklisted_tests_as_failures() {
    let file = |cases: &str| {
        format!(
            "<testsuite name='tst_Shop' timestamp='2026-11-20T11:00:00' tests='2' failures='1' errors='8' time='0.1'>\
             <properties><property name='QTestVersion' value='6.2.0'/></properties>{cases}</testsuite>"
        )
    };
    let green = "<testcase name='adds' result='pass' time='0.1'/>\
        <testcase name='pays' result='bfail' time='0.1'><!-- type=\"qwarn\" message=\"slow\" --></testcase>";
    assert_eq!(outline_of(&file(green)), ["Passed tst_Shop.adds", "Passed tst_Shop.pays"]);
    let cut = "<testcase name='adds' result='pass' time='0.1'/>";
    assert_eq!(outline_of(&file(cut)), ["Passed tst_Shop.adds", "Aborted tst_Shop"]);
}

#[test]
fn results_of_jest_are_read_as_reporters_get_them() {
    let file = |error: &str| {
        format!(
            r#"{{"numRuntimeErrorTestSuites": 0, "numTotalTestSuites": 1, "numTotalTests": 1, "numFailedTests": 0,
                "testResults": [{{"testFilePath": "/shop/cart.test.js", "failureMessage": null, "testExecError": {error},
                "testResults": [{{"ancestorTitles": ["cart"], "title": "adds", "status": "passed"}}]}}]}}"#
        )
    };
    assert_eq!(outline_of(&file("null")), ["Passed cart adds.cart adds"]);
    for error in [r#""adds is not a function""#, r#"{"message": "adds is not a function"}"#] {
        let found = outline_of(&file(error));
        assert_eq!(found[0], "Passed cart adds.cart adds");
        assert!(found[1].starts_with("Error "), "{found:?}");
    }
}
