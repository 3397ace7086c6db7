//! The tests that fail, with their steps and pictures.

use super::{heading, others};
use crate::{
    block::{Block, Tone},
    report::{Failure, Listed, Step},
};

pub(super) fn failures(failures: Listed<Failure>, blocks: &mut Vec<Block>) {
    blocks.push(heading("Failures"));
    if failures.items.is_empty() && failures.left_out == 0 {
        blocks.push(Block::Paragraph("No test case failed.".to_owned()));
    }
    for failure in failures.items {
        of_test(failure, blocks);
    }
    blocks.extend(others(failures.left_out, "further failures are shown without their steps"));
}

fn of_test(failure: Failure, blocks: &mut Vec<Block>) {
    let Failure { test, ticket, comment, instance, steps } = failure;
    blocks.push(Block::Heading { level: 3, text: test.name });
    let facts = [test.identifier, test.result.label, test.change, instance, ticket, comment];
    let facts: Vec<_> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    blocks.push(Block::Paragraph(facts.join(" · ")));
    blocks.extend(text("Message", Tone::Fail, test.headline));
    let left_out = steps.left_out;
    for step in steps.items {
        of_step(step, blocks);
    }
    blocks.extend(others(left_out, "further steps are left out"));
}

fn of_step(step: Step, blocks: &mut Vec<Block>) {
    let is_failure = step.result.tone == Tone::Fail;
    let label = |part: &str| format!("Step {}: {part}", step.number);
    let facts = [step.result.label.to_lowercase(), step.duration];
    let facts: Vec<_> = facts.into_iter().filter(|fact| !fact.is_empty()).collect();
    blocks.push(Block::Badge {
        tone: step.result.tone,
        text: format!("Step {}: {}", step.number, facts.join(", ")),
    });
    blocks.extend(text(&label("input"), Tone::Plain, step.input));
    blocks.extend(text(&label("expected result"), Tone::Plain, step.expected));
    let tone = if is_failure { Tone::Fail } else { Tone::Plain };
    blocks.extend(text(&label("actual result"), tone, step.actual));
    for check in step.checks {
        blocks.extend(text(&label("check that failed"), Tone::Fail, check));
    }
    for (index, picture) in step.pictures.into_iter().enumerate() {
        let caption = format!("Screenshot {} of step {} of the test", index + 1, step.number);
        blocks.push(Block::Figure { picture, caption });
    }
    for left_out in step.left_out {
        blocks.push(Block::Note(format!("Picture left out: {left_out}.")));
    }
}

/// A text, unless it is empty.
fn text(label: &str, tone: Tone, text: String) -> Option<Block> {
    let is_empty = text.trim().is_empty();
    (!is_empty).then(|| Block::Text { label: label.to_owned(), tone, text })
}
