//! A comment on a pull or merge request and a status of its commit, on the host of the repository.

mod github;
mod gitlab;
mod rest;

use std::fmt::Write as _;

use anyhow::Context;
use assay_client::{Client, harmless, segment};
use reqwest::Method;
use secrecy::SecretString;

use self::rest::Rest;
use crate::{Config, environment::Host, execution::Execution, verdict::Verdict};

/// Maximum size of a verdict in Markdown, in bytes.
const LARGEST: u64 = 16 << 20;

/// Maximum size of a comment, in bytes. GitHub accepts 65,536 characters.
const LARGEST_COMMENT: usize = 60_000;

/// Maximum length of a status's name and description, in characters.
const LONGEST: usize = 100;

/// The outcome of an execution for the readers of a change.
pub(crate) struct Feedback {
    /// First line of the comment, by which it is found again.
    marker: String,
    body: String,
    has_passed: bool,
    /// Name of the status.
    context: String,
    description: String,
    /// The page of the execution.
    url: Option<String>,
}

impl Feedback {
    /// Returns the verdict of an execution as Assay renders it.
    pub(crate) async fn new(
        client: &Client,
        config: &Config,
        execution: &Execution,
        verdict: &Verdict,
    ) -> anyhow::Result<Self> {
        let path = format!("{}/verdict.md", execution.path());
        let answer = client.send_reliably(|client| client.request(Method::GET, &path)).await?;
        let text = String::from_utf8(answer.bytes(LARGEST).await?);
        let text = text.context("the verdict in Markdown")?;
        let statistic = &execution.statistic;
        let (project, set) =
            (segment(&config.project), segment(config.set.as_deref().unwrap_or_default()));
        let marker = format!("<!-- assay-ci {project}/{set} -->");
        Ok(Self {
            body: format!("{marker}\n{}", shortened(inert(&text))),
            marker,
            has_passed: verdict.has_passed(),
            context: format!("assay/{}", harmless(execution.test_set_name.raw(), LONGEST)),
            description: format!("{} of {} test cases passed", statistic.passed, statistic.total),
            url: execution.url.as_ref().map(|url| url.raw().to_owned()).filter(|url| is_link(url)),
        })
    }

    /// Writes the verdict as the one comment of this test set on a change, and as a status of its commit.
    pub(crate) async fn publish(
        &self,
        host: Option<&Host>,
        token: Option<SecretString>,
    ) -> anyhow::Result<()> {
        let host = host.context("this is not a job of GitHub Actions or GitLab CI for a commit")?;
        let token = token.with_context(|| {
            format!("set ASSAY_COMMENT_TOKEN or {} to a token of the host", host.token())
        })?;
        match host {
            Host::GitHub(job) => github::publish(&Rest::github(&job.api, &token)?, job, self).await,
            Host::GitLab(job) => gitlab::publish(&Rest::gitlab(&job.api, &token)?, job, self).await,
        }
    }
}

fn is_link(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// A space without width. Hosts look for `@name` and `#1` when backslashes and entities are gone, so only something
/// between breaks them.
const BREAK: char = '\u{200b}';

/// Returns Markdown of the server without HTML, images, code, mentions and commands of the host, such as
/// `/merge` at the beginning of a line.
fn inert(text: &str) -> String {
    let (mut inert, mut is_escaped) = (String::with_capacity(text.len()), false);
    for char in text.chars() {
        let is_first = inert.is_empty() || inert.ends_with('\n');
        if inert.ends_with('@') || inert.ends_with('#') && char.is_ascii_digit() {
            inert.push(BREAK);
        }
        match char {
            BREAK if inert.ends_with(BREAK) => {}
            '\n' => inert.push('\n'),
            char if char.is_control() => {}
            '<' | '@' | '!' | '`' | '&' if !is_escaped => inert.extend(['\\', char]),
            '/' if is_first => inert.push_str("\\/"),
            ' ' if is_first => {}
            char => inert.push(char),
        }
        is_escaped = char == '\\' && !is_escaped;
    }
    inert
}

/// Returns as many lines of a text as a comment can have.
fn shortened(mut text: String) -> String {
    if text.len() > LARGEST_COMMENT {
        let end = text.floor_char_boundary(LARGEST_COMMENT);
        let end = text[..end].rfind('\n').map_or(0, |at| at + 1);
        let left_out = text[end..].lines().count();
        text.truncate(end);
        let _ = write!(text, "\n{left_out} more lines are in Assay\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_has_as_many_lines_as_the_host_accepts() {
        let text = "| é |\n".repeat(20_000);
        let cut = shortened(text.clone());
        assert!(cut.len() < 61_000 && text.starts_with(cut.split("\n\n").next().unwrap()));
        let kept = cut.lines().filter(|line| line.starts_with('|')).count();
        assert!(cut.ends_with(&format!("\n{} more lines are in Assay\n", 20_000 - kept)), "{kept}");
        assert_eq!(shortened("| a |\n".to_owned()), "| a |\n");
    }

    #[test]
    fn a_verdict_stays_readable_and_commands_nothing() {
        for (text, expected) in [
            ("### [N](https://a/e): failed\n\n| ✅ | a\\_b |\n", None),
            ("ada\\@\u{200b}example.org \\<b\\> \\#\u{200b}1", None),
            ("\\@ada \\#1 #2", Some("\\@\u{200b}ada \\#\u{200b}1 #\u{200b}2")),
            ("&#64;ada &commat;all", Some("\\&#\u{200b}64;ada \\&commat;all")),
            ("  /merge\n/close", Some("\\/merge\n\\/close")),
            ("<img> ![i](x) `c` @all", Some("\\<img> \\![i](x) \\`c\\` \\@\u{200b}all")),
            ("\\\\<b>\r", Some("\\\\\\<b>")),
        ] {
            assert_eq!(inert(text), expected.unwrap_or(text));
        }
    }
}
