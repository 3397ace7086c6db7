//! Conversion of an item and of those below it to an attempt at a test.

use assay_proto::{TestResult, worst};

use super::{ItemId, item::Item, tree::Tree, with_end};
use crate::{
    Attachment, Attempt, Content, Problem, Step, Test,
    limits::{DEEPEST, MESSAGE, MOST_ATTACHMENTS, MOST_STEPS, OUTPUT, TEXT},
    model::Nature,
    texts::beginning,
};

/// Returns a test with its first attempt. `path` has the names of the enclosing items and its own.
pub(super) fn test(item: &Item, identity: String, mut path: Vec<String>, attempt: Attempt) -> Test {
    let name = path.pop().unwrap_or_default();
    let mut test = Test {
        suites: path,
        name,
        id: identity,
        start: item.start,
        seconds: attempt.seconds,
        attempts: vec![attempt],
        comment: item.issue().to_owned(),
        ..Test::default()
    };
    item.labels.iter().cloned().for_each(|label| test.label(label));
    test
}

/// Returns the attempt that an item is.
pub(super) fn of(tree: &Tree, id: ItemId) -> Attempt {
    let (item, result) = (tree.item(id), result(tree, id, 0));
    let (mut steps, mut attachments) = (Vec::new(), item.files.clone());
    for child in tree.children(id) {
        add_step(tree, *child, 0, &mut steps, &mut attachments);
    }
    attachments.truncate(MOST_ATTACHMENTS - 1);
    if item.log.len() > OUTPUT {
        let content = Content::Inline(item.log.clone().into_bytes());
        let (name, media_type) = ("log.txt".to_owned(), "text/plain".to_owned());
        attachments.push(Attachment { name, media_type, content });
    }
    let mut attempt = Attempt {
        start: item.start,
        seconds: item.seconds(),
        result,
        steps,
        attachments,
        ..Attempt::default()
    };
    describe(&mut attempt, item);
    attempt
}

/// Adds the texts of an item to its attempt.
fn describe(attempt: &mut Attempt, item: &Item) {
    let Some(nature) = Nature::of(attempt.result) else {
        attempt.reason = beginning(&item.texts(), TEXT);
        return;
    };
    let description = item.description();
    let mut text = item.errors.trim();
    if description.contains(text) || description.is_empty() && text.is_empty() {
        text = description;
    }
    let is_unfinished = item.finished.is_none();
    let message = if is_unfinished { "The test did not finish." } else { description };
    let message = beginning(message, MESSAGE);
    let text = text.to_owned();
    // A step that failed has the reason.
    let is_explained = attempt.steps.iter().any(|step| step.result.is_failure());
    if !message.is_empty() || !text.is_empty() || !is_explained {
        attempt.problems.push(Problem { nature, message, text });
    }
    attempt.output = with_end(String::new(), &item.output);
}

/// Adds the steps that an item and those below it are.
fn add_step(
    tree: &Tree,
    id: ItemId,
    depth: usize,
    steps: &mut Vec<Step>,
    attachments: &mut Vec<Attachment>,
) {
    let item = tree.item(id);
    if steps.len() < MOST_STEPS {
        steps.push(Step {
            depth,
            name: item.name.clone(),
            result: result(tree, id, depth),
            seconds: item.seconds(),
            message: beginning(&item.texts(), MESSAGE),
        });
    }
    attachments.extend(item.files.iter().cloned());
    if depth < DEEPEST {
        for child in tree.children(id) {
            add_step(tree, *child, depth + 1, steps, attachments);
        }
    }
}

/// Returns the result of an item: its own, or else the worst of its children. An item that did not
/// finish was aborted.
fn result(tree: &Tree, id: ItemId, depth: usize) -> TestResult {
    let Some(finished) = &tree.item(id).finished else { return TestResult::Aborted };
    finished.result.unwrap_or_else(|| {
        let children = tree.children(id).iter().filter(|_| depth < DEEPEST);
        let results = children.map(|child| result(tree, *child, depth + 1));
        results.fold(TestResult::Passed, worst)
    })
}
