//! The output of a test while an engine runs it.

use axum::{
    extract::Path,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};
use uuid::Uuid;

use super::view::report;
use crate::{
    api::Api,
    failure::Failure,
    layout::{Crumb, Page},
    page::execution::path,
    record::{LiveLog, Report},
    session::Session,
    text::{ansi, clean, plain, short_time},
};

/// Number of bytes at the end of the log that the page shows.
const SHOWN: i64 = 64 << 10;

/// Shows the end of the log. The script replaces it every few seconds while the test runs.
pub(super) async fn page(
    Session { api, user }: Session,
    Path(id): Path<Uuid>,
) -> Result<Response, Failure> {
    let report = report(&api, id).await?;
    let log = read(&api, &report).await?;
    let here = format!("/reports/{id}");
    let body = html! {
        div.head { h1 { "Log of " bdi { (plain(&report.test_case_name)) } } }
        (section(&report, &log))
        p { a.button href=(here) { "Result of the test" } }
    };
    let trail = vec![
        Crumb(format!("/executions/{}", report.execution_id), short_time(report.request_time)),
        Crumb(here, html! { bdi { (plain(&report.test_case_name)) } }),
    ];
    let title = format!("Log of {}", clean(&report.test_case_name));
    Ok(Page { user: &user, title, trail, body }.into_response())
}

/// Reads the end of the log of a test report.
pub(super) async fn read(api: &Api, report: &Report) -> Result<LiveLog, Failure> {
    let log = format!("{}/reports/{}/log", path(&report.execution_id), report.id);
    api.get(&log, &[("offset", -SHOWN)]).await
}

/// The end of a log.
pub(super) fn section(report: &Report, log: &LiveLog) -> Markup {
    let follows = log.is_running.then(|| format!("/reports/{}/log", report.id));
    html! {
        section #log data-follow=[follows] {
            @if log.text.is_empty() {
                p.empty {
                    @if log.is_running { "No output yet. It appears here while the test runs." }
                    @else { "The log has ended. Its file is with the result of the test." }
                }
            } @else {
                p.small {
                    "Output at engine " bdi { (plain(&log.engine)) }
                    @if log.offset > 0 { ", without its first " (log.offset) " bytes" }
                }
                pre tabindex="0" aria-label="Output of the test" { (ansi(&log.text)) }
            }
            @if log.is_running {
                noscript { p { a.button href=(format!("/reports/{}/log", report.id)) { "Refresh" } } }
            }
        }
    }
}
