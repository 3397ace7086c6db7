//! Comments and statuses on GitLab.
//!
//! <https://docs.gitlab.com/api/notes/> and <https://docs.gitlab.com/api/commits/>

use assay_client::segment;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Feedback, rest::Rest};
use crate::environment::GitLab;

/// Number of comments in a page, and maximum number of pages that are searched.
const PAGE: usize = 100;
const MAX_PAGES: usize = 30;

#[derive(Deserialize)]
struct User {
    id: u64,
}

/// A comment, as far as it matters here.
#[derive(Deserialize)]
struct Note {
    id: u64,
    body: String,
    author: User,
}

pub(super) async fn publish(rest: &Rest, job: &GitLab, feedback: &Feedback) -> anyhow::Result<()> {
    let mut status = json!({
        "state": if feedback.has_passed { "success" } else { "failed" },
        "name": feedback.context,
        "description": feedback.description,
    });
    if let Some(url) = &feedback.url {
        status["target_url"] = url.as_str().into();
    }
    if let Some(pipeline) = job.pipeline.as_ref().and_then(|id| id.parse::<u64>().ok()) {
        status["pipeline_id"] = pipeline.into();
    }
    let path = format!("/projects/{}/statuses/{}", segment(&job.project), segment(&job.commit));
    rest.send::<Value>(Method::POST, &path, Some(&status)).await?;
    let Some((project, number)) = &job.request else {
        tracing::info!("this job belongs to no merge request; only the status is written");
        return Ok(());
    };
    let notes = format!("/projects/{}/merge_requests/{}/notes", segment(project), segment(number));
    let body = json!({"body": feedback.body});
    let (method, path) = match find(rest, &notes, &feedback.marker).await? {
        Some(id) => (Method::PUT, format!("{notes}/{id}")),
        None => (Method::POST, notes),
    };
    rest.send::<Value>(method, &path, Some(&body)).await?;
    Ok(())
}

/// Returns the id of the comment that the user of the token has written in an earlier run.
async fn find(rest: &Rest, notes: &str, marker: &str) -> anyhow::Result<Option<u64>> {
    let user: User = rest.get("/user").await?;
    for page in 1..=MAX_PAGES {
        let path = format!("{notes}?per_page={PAGE}&page={page}&sort=asc&order_by=created_at");
        let page: Vec<Note> = rest.get(&path).await?;
        let mut ours = page.iter().filter(|note| note.author.id == user.id);
        if let Some(note) = ours.find(|note| note.body.starts_with(marker)) {
            return Ok(Some(note.id));
        }
        if page.len() < PAGE {
            break;
        }
    }
    Ok(None)
}
