//! TestLink: XML exports of test suites, test cases and projects, and XML files with results.
//!
//! A file with results is a run. Without a test plan, its name is that of the file.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};

use super::{
    Source,
    model::{Case, Outcome, Run, Step, StepOutcome, Verdict},
    store::Store,
    text::{description, time},
    xml::{Element, Part, plain, read},
};

/// The elements that are read as trees.
const TREES: [&str; 4] = ["testcase", "details", "testproject", "testplan"];
const OF_RESULTS: [&str; 4] = ["testcase", "testproject", "testplan", "build"];

/// Reads the exports of TestLink.
#[derive(Default)]
pub(super) struct TestLink {
    /// Identifiers of test cases by their internal ids, and by their external ids, of which exports
    /// may have only the number.
    internal: HashMap<String, String>,
    external: HashMap<String, String>,
}

/// Whether a file is an export of TestLink.
pub(super) fn is_testlink(head: &str) -> bool {
    let has = |text: &str| head.contains(text);
    let is_case = has("internalid=") || has("<externalid>") || has("<node_order>");
    head.starts_with('<')
        && (is_results(head) || is_case && (has("<testsuite") || has("<testcase")))
}

/// Whether a file has results: its root is `results`.
fn is_results(head: &str) -> bool {
    let root = head.split('<').find(|tag| tag.starts_with(|c: char| c.is_ascii_alphabetic()));
    root.is_some_and(|tag| tag.starts_with("results")) && head.contains("<testcase")
}

impl Source for TestLink {
    fn name(&self) -> &'static str {
        "testlink"
    }

    fn read(&mut self, files: &[PathBuf], store: &mut Store) -> Result<()> {
        let (mut cases, mut results) = (Vec::new(), Vec::new());
        for file in files {
            let of = if is_results(&super::head::head(file)?) { &mut results } else { &mut cases };
            of.push(file);
        }
        // Results refer to test cases.
        cases.into_iter().try_for_each(|file| self.read_cases(file, store))?;
        results.into_iter().try_for_each(|file| self.read_results(file, store))
    }
}

impl TestLink {
    fn read_cases(&mut self, file: &Path, store: &mut Store) -> Result<()> {
        let mut suites = Vec::<String>::new();
        read(file, &TREES, &mut |part| match part {
            Part::Open(element) => {
                if element.name == "testsuite" {
                    suites.push(element.attribute("name").to_owned());
                }
                Ok(())
            }
            Part::Tree(tree) if tree.name == "testcase" => {
                ensure!(!tree.attribute("name").is_empty(), "the test case has no name");
                let case = self.case(&tree, &suites);
                // The outermost suite with a name; that of a project has none.
                if let Some(set) = suites.iter().find(|suite| !suite.trim().is_empty()) {
                    store.include(set, &case.identifier);
                }
                store.case(case)
            }
            Part::Tree(_) => Ok(()),
            Part::Close(name) => {
                if name == "testsuite" {
                    suites.pop();
                }
                Ok(())
            }
        })
    }

    fn case(&mut self, case: &Element, suites: &[String]) -> Case {
        let name = case.attribute("name").to_owned();
        let internal = case.attribute("internalid");
        let (full, number) = (case.text_of("fullexternalid"), case.text_of("externalid"));
        let identifier = match (full, number, internal) {
            ("", "", "") => name.clone(),
            ("", "", internal) => format!("TL-{internal}"),
            ("", number, _) => format!("TL-{number}"),
            (full, ..) => full.to_owned(),
        };
        for (ids, id) in [(&mut self.internal, internal), (&mut self.external, full)] {
            if !id.is_empty() {
                ids.insert(id.to_owned(), identifier.clone());
            }
        }
        if !number.is_empty() {
            self.external.insert(number.to_owned(), identifier.clone());
        }
        let suites: Vec<_> =
            suites.iter().map(|suite| suite.trim()).filter(|suite| !suite.is_empty()).collect();
        let keywords = case.child("keywords").into_iter().flat_map(|keywords| &keywords.children);
        let keywords: Vec<_> = keywords.map(|keyword| keyword.attribute("name")).collect();
        let fields = case.child("custom_fields").into_iter().flat_map(|fields| &fields.children);
        let fields: Vec<_> = fields
            .map(|field| (field.text_of("name"), field.text_of("value").to_owned()))
            .collect();
        let parts = [
            ("", plain(case.text_of("summary"))),
            ("Preconditions", plain(case.text_of("preconditions"))),
            ("Suite", suites.join(" / ")),
            ("Importance", importance(case.text_of("importance")).to_owned()),
            ("Keywords", keywords.join(", ")),
        ];
        let steps = case.child("steps").into_iter().flat_map(|steps| &steps.children);
        Case {
            identifier,
            name,
            description: description(parts.into_iter().chain(fields)),
            steps: steps.map(step).collect(),
            archived: case.text_of("active") == "0",
        }
    }

    fn read_results(&self, file: &Path, store: &mut Store) -> Result<()> {
        let run = store.key_of(file)?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (mut set, mut build) = (name, None);
        read(file, &OF_RESULTS, &mut |part| {
            let Part::Tree(tree) = part else { return Ok(()) };
            let name = tree.attribute("name");
            match tree.name.as_str() {
                "testplan" if !name.is_empty() => name.clone_into(&mut set),
                "build" if !name.is_empty() => build = Some(name.to_owned()),
                "testcase" => {
                    let outcome = self.outcome(&tree)?;
                    store.result(&run, outcome)?;
                }
                _ => {}
            }
            Ok(())
        })?;
        store.run(Run { key: run, set, build, ..Run::default() })
    }

    fn outcome(&self, result: &Element) -> Result<Outcome> {
        let (internal, external) = (result.attribute("id"), result.attribute("external_id"));
        let name = result.attribute("name");
        ensure!(
            !internal.is_empty() || !external.is_empty() || !name.is_empty(),
            "the result has neither id, external_id nor name"
        );
        let number = external.rsplit('-').next().unwrap_or_default();
        let known = self.internal.get(internal).or_else(|| self.external.get(external));
        let known = known.or_else(|| self.external.get(number)).cloned();
        let identifier = known.unwrap_or_else(|| match (external, internal) {
            ("", "") => name.to_owned(),
            ("", internal) => format!("TL-{internal}"),
            (external, _) => external.to_owned(),
        });
        let tickets = result.children.iter().filter(|child| child.name == "bug_id");
        let tickets: Vec<_> = tickets.map(|ticket| ticket.text.trim()).collect();
        let minutes = result.text_of("execution_duration").parse::<f64>().ok();
        let end = time(result.text_of("timestamp"));
        let steps = result.child("steps").into_iter().flat_map(|steps| &steps.children);
        Ok(Outcome {
            identifier,
            name: name.to_owned(),
            verdict: verdict(result.text_of("result")),
            start: end,
            end,
            seconds: minutes.map(|minutes| minutes * 60.0),
            steps: steps
                .map(|step| StepOutcome {
                    actual: plain(step.text_of("notes")),
                    verdict: verdict(step.text_of("result")),
                    ..StepOutcome::default()
                })
                .collect(),
            comment: plain(result.text_of("notes")),
            ticket: tickets.join(", "),
            ..Outcome::default()
        })
    }
}

fn step(step: &Element) -> Step {
    Step {
        input: plain(step.text_of("actions")),
        expected: plain(step.text_of("expectedresults")),
        comment: String::new(),
    }
}

fn importance(number: &str) -> &'static str {
    match number {
        "1" => "Low",
        "2" => "Medium",
        "3" => "High",
        _ => "",
    }
}

/// Returns the result that a status code of TestLink stands for.
fn verdict(code: &str) -> Verdict {
    match code {
        "" | "n" => Verdict::None,
        "p" => Verdict::Passed,
        "f" => Verdict::Failed,
        "b" => Verdict::Aborted,
        "x" => Verdict::Canceled,
        other => Verdict::Unknown(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
