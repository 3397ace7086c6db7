//! Classification of tests, as their results name it.

use std::sync::Arc;

use assay_formats::{Link, Property, Test};
use assay_proto::Classification;
use assay_records::Check;
use prost::Message;

/// Maximum size of the classifications of the tests of a report, in bytes.
const LARGEST: usize = 8 << 20;

/// Maximum number of suites, labels and links of a result, each.
const MOST: usize = 50;

/// Maximum length of a name and of the target of a link, in characters.
const LONGEST_NAME: usize = 255;
const LONGEST_TARGET: usize = 1000;

/// The classifications of the tests of a report. Tests that follow each other share one if it is the
/// same.
#[derive(Default)]
pub(super) struct Classifications {
    suites: Vec<String>,
    labels: Vec<Property>,
    links: Vec<Link>,
    /// Classification that follows from these.
    last: Option<Arc<Classification>>,
    /// Size of those of all tests, in bytes.
    size: usize,
    left_out: usize,
}

impl Classifications {
    /// Returns the classification of a test, if it has one and there is room, and how much memory it
    /// takes in addition to those before, in bytes.
    pub(super) fn of(&mut self, test: &Test) -> (Option<Arc<Classification>>, usize) {
        let is_same =
            self.suites == test.suites && self.labels == test.labels && self.links == test.links;
        if !is_same {
            self.suites.clone_from(&test.suites);
            self.labels.clone_from(&test.labels);
            self.links.clone_from(&test.links);
            self.last = test.classification().map(Arc::new);
        }
        let Some(last) = &self.last else { return (None, 0) };
        let size = last.encoded_len();
        if self.size + size > LARGEST {
            self.left_out += 1;
            return (None, 0);
        }
        self.size += size;
        (Some(last.clone()), if is_same { 0 } else { size })
    }

    /// Returns a note on the classifications that are left out, if there are any.
    pub(super) fn note(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            format!(
                "The suites, labels and links of {} tests are not stored: those of a report have \
                 at most {} MiB.",
                self.left_out,
                LARGEST >> 20
            )
        })
    }
}

/// Checks the classification of a result, and returns it unless it is empty.
pub(super) fn checked(
    classification: Classification,
    check: &mut Check,
) -> Option<Arc<Classification>> {
    let Classification { suites, labels, links } = &classification;
    for (field, count) in
        [("Suites", suites.len()), ("Labels", labels.len()), ("Links", links.len())]
    {
        if count > MOST {
            check.refuse(field, format!("must be at most {MOST}"));
            return None;
        }
    }
    for (index, suite) in suites.iter().enumerate() {
        check.line(&format!("Suites/{index}"), suite, 1..=LONGEST_NAME);
    }
    for (index, label) in labels.iter().enumerate() {
        check.within(format_args!("Labels/{index}"), |check| {
            check.line("Name", &label.name, 1..=LONGEST_NAME);
            check.line("Value", &label.value, 0..=LONGEST_NAME);
        });
    }
    for (index, link) in links.iter().enumerate() {
        check.within(format_args!("Links/{index}"), |check| {
            check.line("Kind", &link.kind, 0..=LONGEST_NAME);
            check.line("Target", &link.target, 1..=LONGEST_TARGET);
        });
    }
    (classification != Classification::default()).then(|| Arc::new(classification))
}
