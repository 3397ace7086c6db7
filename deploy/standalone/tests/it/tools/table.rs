//! `docs/tools.md`, generated from the manifests of the test tools.

use std::{env, fmt::Write as _, fs};

use serde_json::Value;

use super::{files, manifest};
use crate::documents::at;

const HEAD: &str = "\
# Numbers of test tools and of Assay

Each of these tools runs a suite with everything that its reports can say, and its numbers are compared with the
statistic, the verdict and the page of the execution in Assay: `make test-tools` runs all of them. The table is generated
from their manifests in [`deploy/tools`](../deploy/tools/README.md), which also have the commands.

Assay counts instances: *failed* has those that failed, had an error or were aborted, *skipped* those that were
canceled. If its numbers differ from those of the tool, the sentence above the table says why, or the tool counts
otherwise: failures of suites and hooks are entries of their own in Assay, and expected failures have passed or are
skipped, as the report says. A run that ends with an exit code other than 0 is never green, except for the reports that
are marked `*`, which do not say it. A report that says nothing about tests is refused.
";

/// Joins the counts that are not 0, in the order of the words that follow and then of the others.
fn counts(counts: &Value) -> String {
    let Some(counts) = counts.as_object() else {
        return counts.as_str().unwrap_or_default().to_owned();
    };
    let order = ["total", "passed", "failed", "errors", "skipped"];
    let first = order.iter().filter_map(|word| Some((*word, counts.get(*word)?)));
    let others = counts.iter().map(|(word, count)| (word.as_str(), count));
    let others = others.filter(|(word, _)| !order.contains(word));
    let counts = first.chain(others).filter(|(_, count)| **count != 0);
    let counts: Vec<_> = counts.map(|(word, count)| format!("{count} {}", words(word))).collect();
    if counts.is_empty() { "no counts".to_owned() } else { counts.join(", ") }
}

/// Splits a name such as `suitesFailed` into words.
fn words(name: &str) -> String {
    name.chars().fold(String::new(), |words, letter| {
        let space = if letter.is_uppercase() { " " } else { "" };
        words + space + &letter.to_lowercase().to_string()
    })
}

fn reports(run: &Value) -> String {
    let is_silent = |report: &str| {
        run["silent"].as_array().is_some_and(|all| all.iter().any(|one| one == report))
    };
    let shown = run["shown"].as_object().unwrap().iter();
    let shown = shown.map(|(report, shown)| {
        let mark = if is_silent(report) { " *" } else { "" };
        format!("`{report}`{mark}: {}", counts(shown))
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { "has no report".to_owned() } else { shown.join("<br>") }
}

fn section(document: &mut String, tool: &Value) {
    let runs = tool["runs"].as_array().unwrap();
    writeln!(document, "\n## {}\n", tool["tool"].as_str().unwrap()).unwrap();
    for run in runs {
        let Some(notes) = run["notes"].as_str() else { continue };
        writeln!(document, "- `{}`: {notes}", run["name"].as_str().unwrap()).unwrap();
    }
    if document.ends_with("\n\n") {
        document.pop();
    }
    document.push_str("\n| Run | Exit code | The tool prints | Assay shows |\n|---|---|---|---|\n");
    for run in runs {
        let (name, code) = (run["name"].as_str().unwrap(), &run["exitCode"]);
        let (printed, shown) = (counts(&run["printed"]), reports(run));
        writeln!(document, "| `{name}` | {code} | {printed} | {shown} |").unwrap();
    }
}

#[test]
fn the_table_of_the_tools_is_that_of_their_manifests() {
    let mut document = HEAD.to_owned();
    for path in files(&at("deploy/tools"), "*/tool.json") {
        section(&mut document, &manifest(&path));
    }
    assert!(document.matches("\n## ").count() > 40, "{document}");
    let path = at("docs").join("tools.md");
    if env::var_os("UPDATE_TOOLS").is_some() {
        fs::write(path, document).unwrap();
        return;
    }
    let committed = fs::read_to_string(path).unwrap_or_default();
    assert!(committed == document, "run UPDATE_TOOLS=1 cargo nextest run -p assay tools::table");
}
