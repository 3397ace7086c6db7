//! Tests of the rules with failures that tools wrote. The README in `tests/failures` describes them.

use std::{collections::BTreeMap, fs, path::Path};

use assay_fingerprint::{Failure, Fingerprint};

/// The start of the line above a production, which states how it was made.
const HEADING: &str = "\n### ";

/// A text of a cause.
struct Production {
    tool: String,
    cause: String,
    how: String,
    text: String,
}

fn productions() -> Vec<Production> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/failures");
    let mut productions = Vec::new();
    for tool in fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        for file in fs::read_dir(&tool).into_iter().flatten().map(|entry| entry.unwrap().path()) {
            productions.extend(read(&file));
        }
    }
    assert!(productions.len() > 500, "the failures are missing");
    productions
}

fn read(file: &Path) -> Vec<Production> {
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let (cause, tool) = (name(file), name(file.parent().unwrap()));
    let contents = format!("\n{}", fs::read_to_string(file).unwrap());
    let sections = contents.split(HEADING).skip(1);
    let production = |section: &str| {
        let (how, text) = section.split_once('\n').unwrap();
        let (how, text) = (how.to_owned(), text.to_owned());
        Production { tool: tool.clone(), cause: cause.clone(), how, text }
    };
    sections.map(production).collect()
}

fn failure(production: &Production) -> Failure {
    Failure::of(&production.text).expect("a text without a failure")
}

#[test]
fn productions_of_one_cause_have_one_fingerprint() {
    let mut causes: BTreeMap<(String, String), Vec<(Failure, String)>> = BTreeMap::new();
    for production in productions() {
        let failure = failure(&production);
        let Production { tool, cause, how, .. } = production;
        causes.entry((tool, cause)).or_default().push((failure, how));
    }
    for (cause, failures) in &causes {
        assert!(failures.len() > 1, "{cause:?} has one production");
        for (failure, how) in failures {
            let (first, other) = &failures[0];
            let headlines = format!("{cause:?}\n{}\n{}", first.headline, failure.headline);
            assert_eq!(failure.fingerprint, first.fingerprint, "{other}, {how}: {headlines}");
        }
    }
}

#[test]
fn different_causes_have_different_fingerprints() {
    let mut causes: BTreeMap<Fingerprint, (String, String)> = BTreeMap::new();
    for production in productions() {
        let Failure { fingerprint, headline } = failure(&production);
        let Production { tool, cause, .. } = production;
        // Tools that report the same error in the same words agree on its fingerprint.
        let (other, example) =
            causes.entry(fingerprint).or_insert_with(|| (cause.clone(), headline.clone()));
        assert_eq!(*other, cause, "{tool}: {headline}\n{example}");
    }
}

#[test]
fn headlines_are_short_and_state_what_the_text_contains() {
    for production in productions() {
        let headline = failure(&production).headline;
        let lines: Vec<&str> = headline.lines().collect();
        assert!((1..=4).contains(&lines.len()), "{headline}");
        assert!(headline.chars().count() <= 400, "{headline}");
        assert!(lines.iter().all(|line| !line.trim().is_empty()), "{headline}");
        assert!(!headline.contains('\u{1b}'), "{headline}");
    }
}
