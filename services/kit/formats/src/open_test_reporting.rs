//! Open Test Reporting, as the JUnit Platform writes it: events, or the hierarchy that they make.
//!
//! Class and name are those of JUnit's own XML: the innermost class around a test, and its name in
//! older reports. Containers are entries if they failed or were skipped, as their tests lack events.

mod node;

use std::{collections::HashMap, io::BufRead};

use assay_proto::Fault;

use self::node::{Kind, Node};
use crate::{
    Attachment, Format, Head, Nature, Property, Sink,
    durations::seconds,
    fault::excessive,
    held,
    limits::{MESSAGE, OUTPUT, TEXT},
    names::{named, shortened},
    texts::{beginning, keep_end},
    times::time,
    xml::{Attributes, Elements, Path, read_elements},
};

/// The format of Open Test Reporting.
pub struct OpenTestReporting;

impl Format for OpenTestReporting {
    fn name(&self) -> &'static str {
        "Open Test Reporting XML"
    }

    fn recognizes(&self, head: &Head) -> bool {
        let namespace = b"opentest4j.org/reporting";
        let has_namespace =
            |line: &[u8]| line.windows(namespace.len()).any(|part| part == namespace);
        matches!(head.xml_root(), "events" | "execution") && head.lines().any(has_namespace)
    }

    fn read(&self, file: &mut dyn BufRead, sink: Sink<'_>) -> Result<(), Fault> {
        let replaced = sink.replaced();
        let (running, open, count, size, entry) = Default::default();
        let mut report = Report { running, open, count, size, entry, sink };
        read_elements(self.name(), file, &replaced, &mut report)?;
        report.finish()
    }
}

/// State of the reader.
struct Report<'s> {
    /// Tests and containers of events that did not finish, by their ids.
    running: HashMap<String, Node>,
    /// Those whose elements are open, outermost first. Of events, that is one.
    open: Vec<(String, Node)>,
    /// Number of tests and containers so far.
    count: usize,
    /// Memory of those that run, in bytes.
    size: usize,
    /// Key of the open entry of data.
    entry: String,
    sink: Sink<'s>,
}

impl Elements for Report<'_> {
    fn is_output(name: &str) -> bool {
        name == "output"
    }

    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        let attribute = |name| attributes.get(name).unwrap_or_default();
        match path.name() {
            "started" => {
                let parent = attributes.get("parentId");
                let mut node = self.child(parent.as_deref());
                node.title = shortened(attribute("name").trim());
                node.start = time(&attribute("time"));
                self.open.push((attribute("id"), node));
            }
            "reported" | "finished" => {
                let id = attribute("id");
                let mut node = self.running.remove(&id).unwrap_or_default();
                self.size = self.size.saturating_sub(node.size);
                if path.name() == "finished" {
                    node.end = time(&attribute("time"));
                }
                self.open.push((id, node));
            }
            "root" | "child" => {
                let parent = self.open.last_mut().map(|(_, parent)| parent);
                let mut node = Node::within(parent, &mut self.count);
                node.title = shortened(attribute("name").trim());
                node.start = time(&attribute("start"));
                node.seconds = seconds(&attribute("duration"), true);
                self.open.push((String::new(), node));
            }
            name => {
                if let Some((_, node)) = self.open.last_mut() {
                    describe(node, name, attributes);
                }
                if name == "entry" {
                    self.entry = beginning(&attribute("key"), MESSAGE);
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        match path.name() {
            "started" | "reported" => self.keep(),
            "finished" | "root" | "child" => match self.open.pop() {
                Some((_, node)) => node.finish().map_or(Ok(()), |test| self.sink.add(test)),
                None => Ok(()),
            },
            name => {
                if let Some((_, node)) = self.open.last_mut() {
                    add_text(node, path.parent(), name, text, &self.entry);
                }
                Ok(())
            }
        }
    }
}

/// Reads the attributes of an element of a test or container.
fn describe(node: &mut Node, element: &str, attributes: &Attributes<'_>) {
    let attribute = |name| attributes.get(name).unwrap_or_default();
    match element {
        "classSource" => node.set_class(&attribute("className")),
        "methodSource" => node.method = named(&attribute("methodName")),
        "result" => node.status = Some(shortened(&attribute("status"))),
        "throwable" => {
            let is_failure = attribute("assertionError") == "true";
            node.nature = Some(if is_failure { Nature::Failure } else { Nature::Error });
        }
        "file" if !attribute("path").is_empty() => {
            node.attempt.attach(Attachment::at(&attribute("path")));
        }
        _ => {}
    }
}

/// Reads the text of an element of a test or container.
fn add_text(node: &mut Node, parent: &str, element: &str, text: &str, key: &str) {
    match (parent, element) {
        ("metadata", "legacyReportingName") => node.legacy_name = named(text),
        ("metadata", "type") => node.kind = Kind::of(text),
        ("tags", "tag") => node.label(Property::new("tag", text)),
        ("result", "reason") => node.reason = beginning(text, MESSAGE),
        ("result", "throwable") => node.stack = beginning(text, TEXT),
        ("attachments", "output") => keep_end(&mut node.attempt.output, text, OUTPUT),
        ("data", "entry") => {
            let line = if matches!(key, "stdout" | "stderr") {
                text.to_owned()
            } else {
                format!("{key}: {text}\n")
            };
            keep_end(&mut node.attempt.output, &line, OUTPUT);
        }
        _ => {}
    }
}

impl Report<'_> {
    /// Returns a new test or container within the one with this id.
    fn child(&mut self, parent: Option<&str>) -> Node {
        let parent = parent.and_then(|id| self.running.get_mut(id));
        Node::within(parent, &mut self.count)
    }

    /// Keeps a test or container of events until it finishes.
    fn keep(&mut self) -> Result<(), Fault> {
        let Some((id, mut node)) = self.open.pop() else { return Ok(()) };
        node.size = node.memory() + id.len();
        self.size += node.size;
        if self.size > held::LARGEST {
            let problem = format!("more than {} MiB of tests do not finish", held::LARGEST >> 20);
            return Err(excessive(OpenTestReporting.name(), "in its events", problem));
        }
        if let Some(replaced) = self.running.insert(id, node) {
            self.size = self.size.saturating_sub(replaced.size);
            return replaced.finish().map_or(Ok(()), |test| self.sink.add(test));
        }
        Ok(())
    }

    /// Passes on the tests that did not finish, or the run, if only containers did not.
    fn finish(self) -> Result<(), Fault> {
        let mut running: Vec<Node> = self.running.into_values().collect();
        running.sort_unstable_by_key(|node| node.number);
        let is_unfinished = !running.is_empty();
        let mut tests = running.into_iter().filter_map(Node::finish).peekable();
        if is_unfinished && tests.peek().is_none() {
            return self.sink.fail_run(Nature::Abortion, "The report ends before the run did.");
        }
        tests.try_for_each(|test| self.sink.add(test))
    }
}
