//! Tests that have to wait for what identifies them, which some formats write behind them.

use assay_proto::Fault;

use crate::{Attempt, Content, Sink, Test, fault::excessive, json::allowance};

/// Maximum size of the tests that wait, in bytes.
pub(crate) const LARGEST: usize = 32 << 20;

/// Tests that wait.
#[derive(Default)]
pub(crate) struct Held<K> {
    tests: Vec<(K, Test)>,
    size: usize,
}

impl<K> Held<K> {
    /// Adds a test. `place` and `reason` describe the excess of too many.
    pub(crate) fn push(&mut self, key: K, test: Test, format: &str) -> Result<(), Fault> {
        allowance::renew();
        self.size += size(&test);
        if self.size > LARGEST {
            let problem = format!(
                "more than {} MiB of tests stand in front of what identifies them",
                LARGEST >> 20
            );
            return Err(excessive(format, "split the report into several files", problem));
        }
        self.tests.push((key, test));
        Ok(())
    }

    /// Returns the number of tests.
    pub(crate) fn len(&self) -> usize {
        self.tests.len()
    }

    /// Returns the tests from this one on.
    pub(crate) fn since(&mut self, first: usize) -> &mut [(K, Test)] {
        self.tests.get_mut(first..).unwrap_or_default()
    }

    /// Passes the tests on after completing each.
    pub(crate) fn release(
        &mut self,
        mut complete: impl FnMut(&K, &mut Test),
        sink: Sink<'_>,
    ) -> Result<(), Fault> {
        self.size = 0;
        for (key, mut test) in std::mem::take(&mut self.tests) {
            complete(&key, &mut test);
            sink.add(test)?;
        }
        Ok(())
    }
}

/// Returns the approximate memory of a test, in bytes.
pub(crate) fn size(test: &Test) -> usize {
    let properties = test.labels.iter().chain(&test.parameters);
    let properties = properties.map(|property| property.name.len() + property.value.len() + 48);
    let links = test.links.iter().map(|link| link.kind.len() + link.target.len() + 48);
    let attempts = test.attempts.iter().map(|attempt| {
        let problems = attempt.problems.iter();
        let problems = problems.map(|problem| problem.message.len() + problem.text.len() + 64);
        let steps = attempt.steps.iter().map(|step| step.name.len() + step.message.len() + 80);
        let files = attempt.attachments.iter().map(|file| {
            let content = match &file.content {
                Content::Path(path) | Content::Artifact(path) => path.len(),
                Content::Inline(bytes) => bytes.len(),
                Content::Dropped => 0,
            };
            content + file.name.len() + file.media_type.len() + 80
        });
        let texts = attempt.reason.len() + attempt.output.len();
        size_of::<Attempt>() + texts + problems.chain(steps).chain(files).sum::<usize>()
    });
    let names = test.suites.iter().map(|suite| suite.len() + 24).sum::<usize>();
    let names = names + test.class.len() + test.name.len();
    // The list of tests grows by doubling.
    2 * size_of::<Test>() + names + properties.chain(links).chain(attempts).sum::<usize>()
}
