//! Tests of the projects, by their ids.

use std::collections::HashMap;

use assay_proto::Fault;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::PlaywrightBlob;
use crate::{
    Attempt, Format, Property, Test,
    fault::excessive,
    held,
    json::{Array, Elements, List, Members, Name, Object, Text},
    limits::{MESSAGE, MOST_LABELS},
    names::{named, shortened},
    playwright::outcome::{Annotation, close, describe},
};

/// Tests that did not get all of their results yet.
#[derive(Default)]
pub(super) struct Declared {
    tests: HashMap<String, Entry>,
    /// Number of tests so far.
    count: usize,
    /// Memory of the tests, in bytes.
    size: usize,
}

#[derive(Default)]
struct Entry {
    /// Number of the test in the order of the report.
    number: usize,
    /// Index of its project, if it is known.
    project: Option<usize>,
    annotations: Vec<Annotation>,
    test: Test,
}

impl Declared {
    fn declare(&mut self, id: String, entry: Entry) {
        self.size += held::size(&entry.test);
        self.count += 1;
        self.tests.insert(id, Entry { number: self.count, ..entry });
    }

    /// Adds an attempt to a test. One that is not declared has its id as its name.
    pub(super) fn add(&mut self, id: &str, attempt: Attempt, annotations: Vec<Annotation>) {
        if !self.tests.contains_key(id) {
            let test = Test { name: named(id), ..Test::default() };
            self.declare(id.to_owned(), Entry { test, ..Entry::default() });
        }
        let Some(entry) = self.tests.get_mut(id) else { return };
        for annotation in annotations {
            if !entry.annotations.contains(&annotation) && entry.annotations.len() < MOST_LABELS {
                entry.annotations.push(annotation);
            }
        }
        let before = held::size(&entry.test);
        entry.test.push(attempt);
        self.size = (self.size + held::size(&entry.test)).saturating_sub(before);
    }

    /// Checks the memory of the tests.
    pub(super) fn check(&self) -> Result<(), Fault> {
        if self.size <= held::LARGEST {
            return Ok(());
        }
        let problem = format!("more than {} MiB of tests wait for results", held::LARGEST >> 20);
        Err(excessive(PlaywrightBlob.name(), "split the run into shards", problem))
    }

    /// Removes a test, and completes it.
    pub(super) fn take(&mut self, id: &str, projects: &[String]) -> Option<Test> {
        let Entry { project, annotations, mut test, .. } = self.tests.remove(id)?;
        self.size = self.size.saturating_sub(held::size(&test));
        let project = project.and_then(|index| projects.get(index)).map_or("", String::as_str);
        describe(&mut test, project, &annotations);
        close(&mut test, &annotations);
        Some(test)
    }

    /// Returns the ids of the tests in their order.
    pub(super) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<(usize, &String)> =
            self.tests.iter().map(|(id, entry)| (entry.number, id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id.clone()).collect()
    }
}

/// A project, or a suite of it.
pub(super) struct Project<'b> {
    tests: &'b mut Declared,
    projects: &'b mut Vec<String>,
    /// Titles of the open suites, outermost first. The first one is a file.
    titles: Vec<String>,
}

/// A test, or a suite, which has further members.
#[derive(Default)]
struct Reported {
    id: Text<256>,
    title: Name,
    tags: List<Text<MESSAGE>, MOST_LABELS>,
    annotations: List<Annotation, MOST_LABELS>,
}

impl<'b> Project<'b> {
    pub(super) fn new(tests: &'b mut Declared, projects: &'b mut Vec<String>) -> Self {
        Self { tests, projects, titles: Vec::new() }
    }

    fn declare(&mut self, reported: Reported) {
        let Reported { id, title, tags, annotations } = reported;
        let (class, titles) = match self.titles.split_first() {
            Some((file, titles)) => (file.clone(), titles),
            None => (String::new(), &[][..]),
        };
        let titles = titles.iter().map(String::as_str).filter(|title| !title.is_empty());
        let name = named(&titles.chain([title.0.as_str()]).collect::<Vec<_>>().join(" › "));
        let labels = tags.0.iter().map(|tag| Property::new("tag", &tag.0)).collect();
        let test = Test { class, name, labels, ..Test::default() };
        let project = self.projects.len().checked_sub(1);
        self.tests.declare(id.0, Entry { project, annotations: annotations.0, test, number: 0 });
    }
}

impl Members for Project<'_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "project" => return map.next_value_seed(Object(self)),
            "suites" => return map.next_value_seed(Array(&mut Entries(self))),
            "name" => {
                let Text::<MESSAGE>(name) = map.next_value()?;
                if let Some(last) = self.projects.last_mut() {
                    *last = shortened(&name);
                }
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}

/// Suites and tests of a project or suite.
struct Entries<'p, 'b>(&'p mut Project<'b>);

impl Elements for Entries<'_, '_> {
    fn element<'de, A: SeqAccess<'de>>(&mut self, sequence: &mut A) -> Result<bool, A::Error> {
        let depth = self.0.titles.len();
        self.0.titles.push(String::new());
        let mut open = Open { project: self.0, reported: Reported::default() };
        let is_some = sequence.next_element_seed(Object(&mut open))?.is_some();
        let reported = open.reported;
        self.0.titles.truncate(depth);
        if !reported.id.0.is_empty() {
            self.0.declare(reported);
        }
        Ok(is_some)
    }
}

/// A suite or test while its object is open. Its title is in front of what is in it.
struct Open<'p, 'b> {
    project: &'p mut Project<'b>,
    reported: Reported,
}

impl Members for Open<'_, '_> {
    fn member<'de, A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "title" => {
                self.reported.title = map.next_value()?;
                if let Some(last) = self.project.titles.last_mut() {
                    last.clone_from(&self.reported.title.0);
                }
            }
            "testId" => self.reported.id = map.next_value()?,
            "tags" => self.reported.tags = map.next_value()?,
            "annotations" => self.reported.annotations = map.next_value()?,
            "entries" | "suites" | "tests" => {
                return map.next_value_seed(Array(&mut Entries(self.project)));
            }
            _ => _ = map.next_value::<IgnoredAny>()?,
        }
        Ok(())
    }
}
