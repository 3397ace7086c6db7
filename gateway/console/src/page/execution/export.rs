//! The results as documents, and as files that other tools read.

use axum::{Router, extract::Path, response::Response, routing::get};
use maud::{Markup, html};
use uuid::Uuid;

use crate::{api::Console, failure::Failure, record::Summary, session::Session};

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}/executions/{execution}/junit", get(junit))
        .route("/projects/{project}/executions/{execution}/ctrf", get(ctrf))
        .route("/projects/{project}/executions/{execution}/report.html", get(html_report))
        .route("/projects/{project}/executions/{execution}/report.pdf", get(pdf_report))
}

async fn junit(session: Session, Path(ids): Path<(Uuid, Uuid)>) -> Result<Response, Failure> {
    session.api.download(&format!("/api{}/junit", path(ids))).await
}

async fn ctrf(session: Session, Path(ids): Path<(Uuid, Uuid)>) -> Result<Response, Failure> {
    session.api.download(&format!("/api{}/ctrf", path(ids))).await
}

async fn html_report(session: Session, Path(ids): Path<(Uuid, Uuid)>) -> Result<Response, Failure> {
    session.api.download(&format!("/api{}/report.html", path(ids))).await
}

async fn pdf_report(session: Session, Path(ids): Path<(Uuid, Uuid)>) -> Result<Response, Failure> {
    session.api.download(&format!("/api{}/report.pdf", path(ids))).await
}

fn path((project, execution): (Uuid, Uuid)) -> String {
    format!("/projects/{project}/executions/{execution}")
}

/// Links to the files.
pub(super) fn links(summary: &Summary) -> Markup {
    let path = format!("/projects/{}/executions/{}", summary.project_id, summary.execution.id);
    html! {
        p.files {
            "Download "
            a href=(format!("{path}/report.html")) download { "HTML" } ", "
            a href=(format!("{path}/report.pdf")) download { "PDF" } ", "
            a href=(format!("{path}/junit")) download { "JUnit" } " or "
            a href=(format!("{path}/ctrf")) download { "CTRF" }
        }
    }
}
