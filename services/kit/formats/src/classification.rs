//! Classification of tests: suites, labels and links, in the form that services store.

use assay_proto::{self as proto, Classification};

use crate::{
    Link, Property, Test,
    limits::{DEEPEST, MOST_LABELS, TARGET},
    names::shortened,
    texts::beginning,
};

/// Name of the labels that are tags.
pub const TAG: &str = "tag";

impl Test {
    /// Returns where the test belongs. `None` if the tool does not report it.
    pub fn classification(&self) -> Option<Classification> {
        let suites = self.suites.iter().map(|suite| on_one_line(suite));
        let suites = suites.filter(|suite| !suite.is_empty());
        let labels = self.labels.iter().filter(|label| !label.value.trim().is_empty());
        let links = self.links.iter().filter(|link| !link.target.trim().is_empty());
        let classification = Classification {
            suites: suites.take(DEEPEST).map(|suite| shortened(&suite)).collect(),
            labels: each_once(labels.take(MOST_LABELS).map(label)),
            links: each_once(links.take(MOST_LABELS).map(link)),
        };
        (classification != Classification::default()).then_some(classification)
    }

    /// Gives the test the stored classification.
    pub fn classify(&mut self, suites: &[String], labels: &[proto::Label], links: &[proto::Link]) {
        self.suites = suites.to_vec();
        let label = |label: &proto::Label| Property {
            name: label.name.clone(),
            value: label.value.clone(),
        };
        self.labels = labels.iter().map(label).collect();
        let link =
            |link: &proto::Link| Link { kind: link.kind.clone(), target: link.target.clone() };
        self.links = links.iter().map(link).collect();
    }
}

fn label(label: &Property) -> proto::Label {
    let name = if label.name.trim().is_empty() { TAG } else { label.name.trim() };
    proto::Label { name: shortened(name), value: shortened(label.value.trim()) }
}

fn link(link: &Link) -> proto::Link {
    let kind = shortened(link.kind.trim());
    proto::Link { kind, target: beginning(link.target.trim(), TARGET) }
}

fn on_one_line(text: &str) -> String {
    text.trim().replace(char::is_control, " ")
}

fn each_once<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.fold(Vec::new(), |mut kept, one| {
        if !kept.contains(&one) {
            kept.push(one);
        }
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_belongs_to_its_suites_with_each_label_and_link_once() {
        let label = |name: &str, value: &str| Property::new(name, value);
        let link = || Link { kind: "issue".to_owned(), target: "SHOP-7".to_owned() };
        let test = Test {
            suites: vec![" Shop ".to_owned(), String::new(), "x".repeat(300)],
            labels: vec![label("", "smoke"), label("tag", "smoke"), label("owner", " ")],
            links: vec![link(), link()],
            ..Test::default()
        };
        let classification = test.classification().unwrap();
        assert_eq!(classification.suites[0], "Shop");
        assert_eq!(classification.suites[1].chars().count(), 255);
        assert_eq!(
            classification.labels,
            [proto::Label { name: TAG.to_owned(), value: "smoke".to_owned() }]
        );
        assert_eq!(classification.links.len(), 1);
        assert_eq!(Test::default().classification(), None);
    }
}
