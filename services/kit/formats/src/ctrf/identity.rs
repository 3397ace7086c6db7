//! The identity of a test, which is that of the same test in other reports of its tool.

use super::Reported;
use crate::{Property, Test, json::Name, values::pytest_names};

/// Completes the identity of a test of this tool.
pub(super) fn identify(test: &mut Test, tool: &str, reported: &Reported) {
    let name = if reported.extra.is_unnamed.0 { "" } else { reported.name.0.trim() };
    let lines = reported.suite.0.split('\n').filter(|suite| !suite.is_empty());
    let suites: Vec<&str> = if reported.suite.0.contains('\n') {
        lines.clone().collect()
    } else {
        reported.suite.0.split(" > ").filter(|suite| !suite.is_empty()).collect()
    };
    if let Some(Name(class)) = &reported.extra.class {
        // Assay wrote the report. The last suite is the class.
        test.class.clone_from(class);
        test.id.clone_from(&reported.extra.id.0);
        test.suites = lines.map(ToOwned::to_owned).collect();
        if test.suites.last() == Some(class) {
            test.suites.pop();
        }
    } else if let Some((class, name)) = pytest_names(name) {
        (test.class, test.name) = (class, name);
        return;
    } else if tool == "playwright" {
        playwright(test, &suites, name, &reported.file_path.0);
        return;
    } else if tool == "jest" {
        // jest-junit uses the whole name as class.
        name.clone_into(&mut test.class);
    } else {
        test.class = suites.join(" > ");
    }
    name.clone_into(&mut test.name);
}

/// The suites are the project, the file and titles.
fn playwright(test: &mut Test, suites: &[&str], name: &str, path: &str) {
    let is_file = |suite: &&str| {
        path.strip_suffix(suite).is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
    };
    let file = suites.iter().position(is_file).unwrap_or(0);
    let project = suites[..file].join(" ");
    if !project.is_empty() {
        test.parameters.push(Property::new("Project", &project));
    }
    suites.get(file).copied().unwrap_or_default().clone_into(&mut test.class);
    let titles: Vec<&str> = suites.iter().skip(file + 1).copied().chain([name]).collect();
    test.name = titles.join(" › ");
}
