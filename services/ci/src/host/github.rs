//! Comments and statuses on GitHub.
//!
//! <https://docs.github.com/en/rest/issues/comments> and <https://docs.github.com/en/rest/commits/statuses>

use assay_client::segment;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Feedback, rest::Rest};
use crate::environment::GitHub;

/// Number of comments in a page, and maximum number of pages that are searched.
const PAGE: usize = 100;
const MAX_PAGES: usize = 30;

/// A comment, as far as it matters here.
#[derive(Deserialize)]
struct Comment {
    id: u64,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    author_association: String,
    user: Option<User>,
}

#[derive(Deserialize)]
struct User {
    #[serde(rename = "type")]
    kind: String,
}

impl Comment {
    /// Returns whether this is the comment of an earlier run. Anybody can write the marker, and could
    /// change the text later, so that the author must be a bot or somebody with access.
    fn is_ours(&self, marker: &str) -> bool {
        let is_trusted = self.user.as_ref().is_some_and(|user| user.kind == "Bot")
            || ["OWNER", "MEMBER", "COLLABORATOR"].contains(&&*self.author_association);
        is_trusted && self.body.as_ref().is_some_and(|body| body.starts_with(marker))
    }
}

pub(super) async fn publish(rest: &Rest, job: &GitHub, feedback: &Feedback) -> anyhow::Result<()> {
    let repository = job.repository.split('/').map(segment).collect::<Vec<_>>().join("/");
    let repository = format!("/repos/{repository}");
    let status = json!({
        "state": if feedback.has_passed { "success" } else { "failure" },
        "context": feedback.context,
        "description": feedback.description,
        "target_url": feedback.url,
    });
    let path = format!("{repository}/statuses/{}", segment(&job.commit));
    rest.send::<Value>(Method::POST, &path, Some(&status)).await?;
    let Some(number) = &job.request else {
        tracing::info!("this job belongs to no pull request; only the status is written");
        return Ok(());
    };
    let comments = format!("{repository}/issues/{}/comments", segment(number));
    let body = json!({"body": feedback.body});
    let (method, path) = match find(rest, &comments, &feedback.marker).await? {
        Some(id) => (Method::PATCH, format!("{repository}/issues/comments/{id}")),
        None => (Method::POST, comments),
    };
    rest.send::<Value>(method, &path, Some(&body)).await?;
    Ok(())
}

/// Returns the id of the comment of an earlier run.
async fn find(rest: &Rest, comments: &str, marker: &str) -> anyhow::Result<Option<u64>> {
    for page in 1..=MAX_PAGES {
        let path = format!("{comments}?per_page={PAGE}&page={page}");
        let page: Vec<Comment> = rest.get(&path).await?;
        if let Some(comment) = page.iter().find(|comment| comment.is_ours(marker)) {
            return Ok(Some(comment.id));
        }
        if page.len() < PAGE {
            break;
        }
    }
    Ok(None)
}
