//! The XML export of a test suite.

use std::path::Path;

use anyhow::Result;

use super::TestRail;
use crate::source::{
    model::{Case, Step},
    store::Store,
    text::description,
    xml::{Element, Part, read},
};

/// Custom fields with a text of their own in a description. Others follow under their names.
const STEPS: [&str; 4] = ["preconds", "steps", "expected", "steps_separated"];

impl TestRail {
    pub(super) fn read_xml(&mut self, file: &Path, store: &mut Store) -> Result<()> {
        let (mut sections, mut set) = (Vec::<String>::new(), String::new());
        read(file, &["case", "name", "description"], &mut |part| match part {
            Part::Open(element) => {
                if element.name == "section" {
                    sections.push(String::new());
                }
                Ok(())
            }
            Part::Tree(tree) if tree.name == "case" => {
                let case = self.case(&tree, &sections);
                if !set.is_empty() {
                    store.include(&set, &case.identifier);
                }
                store.case(case)
            }
            Part::Tree(tree) => {
                match (tree.name.as_str(), sections.last_mut()) {
                    ("name", Some(section)) => tree.text.trim().clone_into(section),
                    ("name", None) => tree.text.trim().clone_into(&mut set),
                    _ => {}
                }
                Ok(())
            }
            Part::Close(name) => {
                if name == "section" {
                    sections.pop();
                }
                Ok(())
            }
        })
    }

    fn case(&mut self, case: &Element, sections: &[String]) -> Case {
        let custom = case.child("custom");
        let field = |name: &str| custom.map_or("", |custom| custom.text_of(name));
        let separated = custom.and_then(|custom| custom.child("steps_separated"));
        let steps = match separated {
            Some(steps) => steps.children.iter().map(step).collect(),
            None => single_step(field("steps"), field("expected")),
        };
        let others = custom.iter().flat_map(|custom| &custom.children);
        let others = others.filter(|field| !STEPS.contains(&field.name.as_str()));
        let others: Vec<_> = others.map(|field| (field.name.as_str(), value(field))).collect();
        let parts = [
            ("Preconditions", field("preconds").to_owned()),
            ("Section", sections.join(" / ")),
            ("Type", case.text_of("type").to_owned()),
            ("Priority", case.text_of("priority").to_owned()),
            ("References", case.text_of("references").to_owned()),
        ];
        let number = case.text_of("id").to_owned();
        let title = case.text_of("title").to_owned();
        let number = if number.is_empty() { title.clone() } else { number };
        Case {
            identifier: self.identifier(&number, field("automation_id")),
            name: title,
            description: description(parts.into_iter().chain(others)),
            steps,
            archived: case.text_of("is_deleted") == "1",
        }
    }
}

fn step(step: &Element) -> Step {
    Step {
        input: step.text_of("content").to_owned(),
        expected: step.text_of("expected").to_owned(),
        comment: step.text_of("additional_info").to_owned(),
    }
}

/// Returns the step of a test case with one text for all of its steps.
pub(super) fn single_step(input: &str, expected: &str) -> Vec<Step> {
    if input.is_empty() && expected.is_empty() {
        return Vec::new();
    }
    vec![Step { input: input.to_owned(), expected: expected.to_owned(), ..Step::default() }]
}

/// Returns the value of a custom field: a text, the name of an option, or several of them.
fn value(field: &Element) -> String {
    match field.child("value") {
        Some(value) => value.text.trim().to_owned(),
        None if field.children.is_empty() => field.text.trim().to_owned(),
        None => field
            .children
            .iter()
            .map(value)
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join(", "),
    }
}
