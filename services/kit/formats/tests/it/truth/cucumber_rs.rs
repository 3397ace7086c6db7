//! Reports of cucumber-rs, which writes backgrounds, hooks and retries in its own way.

use std::path::Path;

use assay_formats::Test;
use assay_proto::name_of;

use super::{outline, outline_of, sample};

#[test]
fn a_background_of_cucumber_rs_belongs_to_the_scenario_with_its_place() {
    let element = |kind: &str, line: usize, steps: &[&str], before: &[&str]| {
        let results = |statuses: &[&str]| {
            let result =
                |status: &&str| format!(r#"{{"name": "x", "result": {{"status": "{status}"}}}}"#);
            statuses.iter().map(result).collect::<Vec<_>>().join(", ")
        };
        format!(
            r#"{{"type": "{kind}", "id": "shop/s{line}", "name": "s{line}", "line": {line},
                "steps": [{}], "before": [{}]}}"#,
            results(steps),
            results(before)
        )
    };
    for (elements, expected) in [
        (
            // With hooks, backgrounds stand behind their scenarios.
            vec![
                element("scenario", 6, &["passed"], &["passed"]),
                element("background", 6, &["passed"], &[]),
                element("scenario", 9, &[], &["passed"]),
                element("background", 9, &["failed"], &[]),
            ],
            vec!["Passed Shop.s6", "Failed Shop.s9"],
        ),
        (
            // Without hooks, a scenario whose background fails is left out.
            vec![
                element("background", 6, &["failed"], &[]),
                element("background", 9, &["passed"], &[]),
                element("scenario", 9, &["passed"], &[]),
                element("background", 12, &["undefined"], &[]),
            ],
            vec!["Failed Shop.s6", "Passed Shop.s9", "Failed Shop.s12"],
        ),
    ] {
        let elements = elements.join(", ");
        let file =
            format!(r#"[{{"keyword": "Feature", "name": "Shop", "elements": [{elements}]}}]"#);
        assert_eq!(outline_of(&file), expected, "{file}");
    }
}

#[test]
fn retries_of_cucumber_rs_are_those_that_its_junit_report_has() {
    for run in ["cucumber-rs", "cucumber-rs-hooks"] {
        let attempts = |path: String| -> Vec<(String, String)> {
            let tests = sample(&path);
            let results = |test: &Test| {
                let results = test.attempts.iter().map(|attempt| name_of(attempt.result));
                results.map(|result| (test.identifier(), result)).collect::<Vec<_>>()
            };
            tests.iter().flat_map(results).collect()
        };
        let json = attempts(format!("cucumber-json/{run}.json"));
        assert_eq!(json, attempts(format!("junit/{run}.xml")), "{run}");
    }
    let outline = outline(&sample("cucumber-json/cucumber-rs-hooks.json"));
    for line in [
        "Failed > Failed > Passed Shop.flaky twice",
        "Failed > Passed Shop.flaky background",
        "Failed > Failed > Failed Shop.broken background",
        "Failed > Passed Shop.flaky after",
        "Failed > Passed Shop.flaky before",
    ] {
        assert!(outline.iter().any(|found| found == line), "no {line}: {outline:#?}");
    }
}

#[test]
fn hooks_and_steps_that_are_no_retries_belong_to_one_attempt() {
    let element = |before: &str, steps: &str| {
        format!(
            r#"[{{"keyword": "Feature", "name": "Shop", "elements": [{{"type": "scenario", "id": "shop/pays",
                "name": "pays", "line": 3, "before": [{before}], "steps": [{steps}]}}]}}]"#
        )
    };
    let [passed, failed] = ["passed", "failed"]
        .map(|status| format!(r#"{{"name": "x", "line": 4, "result": {{"status": "{status}"}}}}"#));
    for (before, steps, expected) in [
        (format!("{passed}, {passed}"), failed.clone(), "Failed Shop.pays"),
        (String::new(), format!("{passed}, {failed}, {passed}"), "Failed Shop.pays"),
        (String::new(), format!("{failed}, {passed}"), "Failed > Passed Shop.pays"),
        (failed.clone(), passed.clone(), "Failed > Passed Shop.pays"),
    ] {
        assert_eq!(outline_of(&element(&before, &steps)), [expected], "{before} {steps}");
    }
}

#[test]
fn features_of_cucumber_rs_that_cannot_be_parsed_keep_their_path() {
    let feature = sample("junit/cucumber-rs.xml").len();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/junit/cucumber-rs.xml");
    let file = std::fs::read_to_string(path).unwrap().replace(
        "</testsuites>",
        r#"<testsuite id="1" name="Errors" package="testsuite/Errors" tests="1" errors="0" failures="1"
            hostname="localhost" timestamp="2026-11-29T09:12:41Z" time="0">
            <testcase name="Feature: tests/features/broken.feature" time="0">
            <failure type="Parser Error" message="expected a feature"/></testcase></testsuite></testsuites>"#,
    );
    let outline = outline_of(&file);
    assert_eq!(outline[feature..], ["Failed Errors.Feature: tests/features/broken.feature"]);
}
