//! The order of a document: which facts of an execution it has, under which headings.

mod failure;

use crate::{
    block::{Block, Cell, Column, Document, Table, Tone},
    picture::Picture,
    report::{Cause, Listed, Report, Test},
    template::{Section, Template, Text},
    text::{Allowance, line},
};

/// Said instead of the causes of failures whose results have expired.
const EXPIRED: &str = "The messages and steps of the failures are not stored any more. They are removed after the \
                       retention of the project.";

/// Maximum size of the title, in bytes.
const TITLE: usize = 300;

/// Returns the document of an execution. `logo` is the picture that the template names.
pub fn compose(report: Report, template: &Template, logo: Option<Picture>) -> Document {
    let filled = |text: &Option<Text>| text.as_ref().map(|text| text.fill(&report));
    let title =
        filled(&template.title).map(|title| line(&title, TITLE)).filter(|title| !title.is_empty());
    let title = title.unwrap_or_else(|| line(&format!("{}: test report", report.test_set), TITLE));
    let (introduction, closing) = (filled(&template.introduction), filled(&template.closing));
    let time = report.request_time;

    let mut blocks: Vec<Block> = report.notes.iter().cloned().map(Block::Note).collect();
    blocks.extend(paragraphs(introduction));
    let sections = template.sections.as_deref().unwrap_or(&Section::ALL).to_vec();
    let mut report = report;
    for section in sections {
        match section {
            Section::Verdict => verdict(&report, &mut blocks),
            Section::Facts => facts(&report, &mut blocks),
            Section::Counts => counts(&report, &mut blocks),
            Section::Causes => causes(&report, &mut blocks),
            Section::Tests => cases(&report.tests, &mut blocks),
            Section::Failures => {
                failure::failures(std::mem::take(&mut report.failures), &mut blocks);
            }
        }
    }
    blocks.extend(paragraphs(closing));
    Document { title, time, color: template.color, logo, blocks }
}

fn heading(text: &str) -> Block {
    Block::Heading { level: 2, text: text.to_owned() }
}

/// Splits a text of a template at its empty lines.
fn paragraphs(text: Option<String>) -> Vec<Block> {
    let text = text.unwrap_or_default().replace("\r\n", "\n");
    let mut all = Allowance::new(text.len());
    let parts = text.split("\n\n").map(|part| all.text(part, part.len()));
    parts.filter(|part| !part.trim().is_empty()).map(Block::Paragraph).collect()
}

fn verdict(report: &Report, blocks: &mut Vec<Block>) {
    blocks.push(heading("Verdict"));
    let text = format!("{}: {}", report.verdict.label(), sentence(report));
    blocks.push(Block::Badge { tone: report.verdict.tone(), text });
    if report.rules.is_empty() {
        return;
    }
    let row = |rule: &crate::report::Rule| {
        let (met, tone) = if rule.is_met { ("Met", Tone::Pass) } else { ("Not met", Tone::Fail) };
        let met = Cell { tone, ..Cell::plain(met) };
        vec![Cell::plain(&rule.name), met, Cell::plain(&rule.message)]
    };
    blocks.push(Block::Table(Table {
        caption: "Rules of the verdict".to_owned(),
        columns: columns([("Rule", 3), ("Outcome", 2), ("Reason", 7)]),
        rows: report.rules.iter().map(row).collect(),
    }));
}

/// Says in one sentence how many tests failed, and how they differ from those before.
fn sentence(report: &Report) -> String {
    let (counts, changes) = (&report.counts, &report.changes);
    let failed = counts.failed + counts.errors;
    let parts = [
        (changes.new, "new"),
        (changes.cause_changed, "for another cause"),
        (changes.still, "still failing"),
        (changes.flaky, "flaky"),
        (changes.muted, "known"),
        (changes.fixed, "fixed"),
    ];
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts.map(|(count, label)| format!("{count} {label}")).collect();
    let of = if failed == 0 { "none".to_owned() } else { failed.to_string() };
    let all = format!("{of} of {} test cases failed", counts.total);
    if parts.is_empty() { all } else { format!("{all} ({})", parts.join(", ")) }
}

fn facts(report: &Report, blocks: &mut Vec<Block>) {
    let facts = [
        ("Project", report.project.clone()),
        ("Test set", report.test_set.clone()),
        ("Result", report.result.label.clone()),
        ("Requested", report.requested()),
        ("Requested by", report.requested_by.clone()),
        ("Duration", report.duration.clone()),
        ("Subject", report.subject.clone()),
        ("Environment", report.environment.clone()),
        ("Branch", report.branch.clone()),
        ("Commit", report.commit.clone()),
        ("Build", report.build.clone()),
        ("Tags", report.tags.clone()),
        ("Page", report.url.clone()),
    ];
    let facts = facts.into_iter().filter(|(_, text)| !text.is_empty());
    blocks.push(heading("Execution"));
    blocks.push(Block::Table(Table {
        caption: "Facts of the execution".to_owned(),
        columns: columns([("Fact", 3), ("Value", 9)]),
        rows: facts.map(|(name, text)| vec![Cell::plain(name), Cell::plain(text)]).collect(),
    }));
}

fn counts(report: &Report, blocks: &mut Vec<Block>) {
    let (counts, changes) = (&report.counts, &report.changes);
    let rows = [
        ("Test cases", counts.total, Tone::Plain),
        ("Passed", counts.passed, Tone::Pass),
        ("Failed", counts.failed, Tone::Fail),
        ("With an error", counts.errors, Tone::Fail),
        ("Aborted", counts.aborted, Tone::Warn),
        ("Skipped", counts.canceled, Tone::Dim),
        ("Pending", counts.pending, Tone::Dim),
        ("New failures", changes.new, Tone::Fail),
        ("Failing for another cause", changes.cause_changed, Tone::Fail),
        ("Still failing", changes.still, Tone::Fail),
        ("Flaky", changes.flaky, Tone::Warn),
        ("Known failures", changes.muted, Tone::Dim),
        ("Fixed", changes.fixed, Tone::Pass),
    ];
    let rows =
        rows.into_iter().enumerate().filter(|(index, (_, count, _))| *index < 3 || *count > 0);
    let row = |(_, (name, count, tone)): (usize, (&str, i32, Tone))| {
        vec![Cell::plain(name), Cell { tone, ..Cell::plain(count.to_string()) }]
    };
    blocks.push(heading("Results"));
    blocks.push(Block::Table(Table {
        caption: "Numbers of test cases by result and change".to_owned(),
        columns: columns([("Result", 3), ("Number", 9)]),
        rows: rows.map(row).collect(),
    }));
}

fn causes(Report { causes, counts, .. }: &Report, blocks: &mut Vec<Block>) {
    blocks.push(heading("Causes of failures"));
    if causes.items.is_empty() {
        let has_failed = counts.failed + counts.errors > 0;
        let text = if has_failed { EXPIRED } else { "No test case failed." };
        blocks.push(Block::Paragraph(text.to_owned()));
        return;
    }
    let row = |cause: &Cause| {
        let message = if cause.headline.is_empty() { "No message" } else { &cause.headline };
        vec![
            Cell::plain(message),
            Cell::plain(cause.count.to_string()),
            Cell::plain(cause.tests.join("\n")),
        ]
    };
    blocks.push(Block::Table(Table {
        caption: "Causes of failures, those of most test cases first".to_owned(),
        columns: columns([("Message", 6), ("Test cases", 2), ("Among them", 4)]),
        rows: causes.items.iter().map(row).collect(),
    }));
    blocks.extend(others(causes.left_out, "further causes are left out"));
}

fn cases(tests: &Listed<Test>, blocks: &mut Vec<Block>) {
    blocks.push(heading("Test cases"));
    if tests.items.is_empty() {
        blocks.push(Block::Paragraph("The execution does not have test cases.".to_owned()));
        return;
    }
    let row = |test: &Test| {
        let detail =
            if test.identifier == test.name { String::new() } else { test.identifier.clone() };
        vec![
            Cell { detail, ..Cell::plain(&test.name) },
            Cell { tone: test.result.tone, ..Cell::plain(&test.result.label) },
            Cell::plain(&test.change),
            Cell::plain(&test.duration),
        ]
    };
    blocks.push(Block::Table(Table {
        caption: "Test cases, those that fail first".to_owned(),
        columns: columns([("Test case", 6), ("Result", 2), ("Change", 3), ("Duration", 2)]),
        rows: tests.items.iter().map(row).collect(),
    }));
    blocks.extend(others(tests.left_out, "further test cases are left out"));
}

/// Says how many entries of a list are missing.
fn others(count: usize, left_out: &str) -> Option<Block> {
    (count > 0).then(|| Block::Note(format!("{count} {left_out}.")))
}

fn columns<const N: usize>(columns: [(&'static str, u16); N]) -> Vec<Column> {
    columns.into_iter().map(|(title, weight)| Column { title, weight }).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        picture,
        report::{Changes, Counts, Failure, Outcome, Rule, Step, Verdict},
    };

    /// A report with one failure, whose texts are these.
    pub(crate) fn report(text: &str) -> Report {
        let failed = Outcome { label: "Failed".to_owned(), tone: Tone::Fail };
        let failing = Test {
            name: format!("Pay by card {text}"),
            identifier: "checkout.pay_by_card".to_owned(),
            result: failed.clone(),
            change: "new".to_owned(),
            duration: "8.3 s".to_owned(),
            headline: format!("TimeoutError {text}"),
        };
        let picture =
            picture::Picture::read(bytes::Bytes::from_static(picture::tests::PIXEL)).unwrap();
        let step = Step {
            number: 1,
            result: failed.clone(),
            duration: "8.0 s".to_owned(),
            input: format!("Press Pay {text}"),
            expected: "The shop confirms the order".to_owned(),
            actual: format!("no response\nafter 30 s {text}"),
            checks: vec!["the total is wrong".to_owned()],
            pictures: vec![picture],
            left_out: vec!["clip.webm: it is not a PNG or JPEG picture".to_owned()],
        };
        let failure = Failure {
            test: failing.clone(),
            ticket: "SHOP-4711".to_owned(),
            comment: String::new(),
            instance: "Project=firefox".to_owned(),
            steps: Listed { items: vec![step], left_out: 3 },
        };
        Report {
            project: "Shop".to_owned(),
            test_set: "Nightly regression".to_owned(),
            verdict: Verdict::Failed,
            result: failed,
            rules: vec![Rule {
                name: "NewFailures".to_owned(),
                is_met: false,
                message: "1 new failure, at most 0 are allowed".to_owned(),
            }],
            request_time: [2026, 3, 2, 9, 30, 4],
            counts: Counts { total: 120, passed: 119, failed: 1, ..Counts::default() },
            changes: Changes { new: 1, ..Changes::default() },
            causes: Listed {
                items: vec![Cause {
                    headline: failing.headline.clone(),
                    count: 1,
                    tests: vec![failing.name.clone()],
                }],
                left_out: 0,
            },
            tests: Listed { items: vec![failing], left_out: 119 },
            failures: Listed { items: vec![failure], left_out: 0 },
            ..Report::default()
        }
    }

    fn headings(document: &Document) -> Vec<&str> {
        let heading = |block| match block {
            &Block::Heading { level: 2, ref text } => Some(text.as_str()),
            _ => None,
        };
        document.blocks.iter().filter_map(heading).collect()
    }

    #[test]
    fn a_template_decides_order_and_presence() {
        let template = br#"{"Sections": ["Tests", "Verdict"], "Title": "{project}", "Closing": "a\n\nb {new}"}"#;
        let document = compose(report(""), &Template::read(template).unwrap(), None);
        assert_eq!(document.title, "Shop");
        assert_eq!(headings(&document), ["Test cases", "Verdict"]);
        assert!(matches!(document.blocks.last(), Some(Block::Paragraph(text)) if text == "b 1"));
    }

    #[test]
    fn the_default_has_all_sections_and_counts_the_missing_tests() {
        let document = compose(report(""), &Template::default(), None);
        let all =
            ["Verdict", "Execution", "Results", "Causes of failures", "Failures", "Test cases"];
        assert_eq!(headings(&document), all);
        let last = document.blocks.last();
        assert!(
            matches!(last, Some(Block::Note(text)) if text == "119 further test cases are left out.")
        );
    }

    /// Returns the paragraphs and the badges of a report.
    fn texts(report: Report) -> Vec<String> {
        let text = |block| match block {
            Block::Paragraph(text) | Block::Badge { text, .. } => Some(text),
            _ => None,
        };
        compose(report, &Template::default(), None).blocks.into_iter().filter_map(text).collect()
    }

    #[test]
    fn failures_whose_causes_have_expired_are_not_denied() {
        let none = "No test case failed.".to_owned();
        let (mut expired, mut passed) = (report(""), report(""));
        expired.causes = Listed::default();
        passed.causes = Listed::default();
        passed.counts = Counts { total: 120, passed: 120, ..Counts::default() };
        let expired = texts(expired);
        assert!(expired.contains(&EXPIRED.to_owned()) && !expired.contains(&none), "{expired:?}");
        assert!(texts(passed).contains(&none));
    }

    #[test]
    fn a_step_that_did_not_run_has_no_duration() {
        let mut report = report("");
        let step = &mut report.failures.items[0].steps.items[0];
        step.result.label = "Skipped".to_owned();
        step.duration = String::new();
        let texts = texts(report);
        assert!(texts.contains(&"Step 1: skipped".to_owned()), "{texts:?}");
    }

    #[test]
    fn the_verdict_is_one_sentence() {
        let report = report("");
        assert_eq!(sentence(&report), "1 of 120 test cases failed (1 new)");
    }
}
