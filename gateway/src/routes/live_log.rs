//! Live logs: the output of tests while engines run them.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::execution::{
    AppendLiveLogRequest, GetLiveLogRequest, LiveLog, LiveLogInput, LiveLogState,
};
use axum::{
    extract::State,
    response::{Response, sse::Event},
};
use futures::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    array::Failure,
    body::Body,
    caller::{StreamQuery, WatchedCaller},
    event_stream::{self, LastEventId},
    path::{Path, ShortRoutes, unless_zero},
    problem::Problem,
    query::Query,
    response::{Json, Resource},
    services::{LiveLogs, Services},
};

/// Maximum time that a call waits for more text, in seconds.
const WAIT: i32 = 30;

/// Time for which text is gathered after a small part, so that a test that prints characters one by one does not cause
/// a message for each of them.
const GATHERED: Duration = Duration::from_millis(200);

/// Size of a part, in bytes, after which the next one follows at once.
const LARGE: usize = 16 << 10;

/// Timeout of a call that waits.
const LONG_POLL: Duration = Duration::from_secs(45);

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(append))
        .routes_also_short(routes!(read))
        .routes_also_short(routes!(stream))
}

impl Resource for LiveLog {}
impl Resource for LiveLogState {}

/// Appends text to the log of a lease, which users can read while the test runs.
///
/// A log has at most 8 MiB. Soon after the end of the lease it becomes the artifact `live.log` of the
/// test report, to which results can refer in `ExecutionLogUri`.
#[utoipa::path(
    post, path = "/api/automation/leases/{leaseId}/log", operation_id = "append_live_log",
    tag = "Automation", request_body = LiveLogInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.LiveLogService/AppendLiveLog"))),
    responses((status = OK, description = "The size of the log", body = LiveLogState)),
)]
async fn append(
    State(mut logs): State<LiveLogs>,
    caller: Caller,
    Path(lease_id): Path<String>,
    Body(log): Body<LiveLogInput>,
) -> Result<Json<LiveLogState>, Problem> {
    let request = AppendLiveLogRequest { lease_id, log: Some(log) };
    Ok(Json(logs.append_live_log(caller.call(request)).await?.into_inner()))
}

/// The part of the log.
#[derive(Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase", default)]
#[into_params(parameter_in = Query)]
struct Position {
    /// Position of the part in the log, in bytes. A negative one counts from the end.
    #[param(example = 0)]
    offset: Option<i64>,
    /// Lease whose log is read, also for a minute after it has become an artifact. If another engine runs the test by
    /// now, its log is read from the start.
    #[param(format = Uuid)]
    lease_id: Option<String>,
}

/// The ids of a project, an execution and a test report.
type ReportPath = (String, String, String);

fn request(
    (project_id, execution_id, test_report_id): ReportPath,
    Position { offset, lease_id }: Position,
) -> GetLiveLogRequest {
    GetLiveLogRequest {
        project_id: unless_zero(project_id),
        execution_id,
        test_report_id,
        lease_id,
        offset,
        wait_in_sec: None,
    }
}

/// Returns a part of the log of a test that an engine runs.
///
/// Without a log, and once it has become an artifact, `LeaseId` is null. `0` instead of the id of the
/// project is the permanent URL.
#[utoipa::path(
    get, operation_id = "get_live_log", tag = "Test reports", params(Position),
    path = "/api/projects/{projectId}/executions/{executionId}/reports/{testReportId}/log",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.LiveLogService/GetLiveLog"))),
    responses((status = OK, description = "A part of the log", body = LiveLog)),
)]
async fn read(
    State(mut logs): State<LiveLogs>,
    caller: Caller,
    Path(path): Path<ReportPath>,
    Query(position): Query<Position>,
) -> Result<Json<LiveLog>, Problem> {
    let request = request(path, position);
    Ok(Json(logs.get_live_log(caller.call(request)).await?.into_inner()))
}

/// Returns the position after the event with this id. An event without a log has no lease, so that any log that there
/// is by now follows from its start.
fn after(id: &str) -> Result<Position, Problem> {
    let (lease, offset) = id.split_once(':').ok_or_else(event_stream::unknown_id)?;
    let offset: u32 = offset.parse().map_err(|_| event_stream::unknown_id())?;
    if lease.is_empty() {
        return Ok(Position { offset: Some(0), lease_id: None });
    }
    Ok(Position { offset: Some(offset.into()), lease_id: Some(lease.to_owned()) })
}

/// Streams the log of a test that an engine runs as server-sent events.
///
/// An event has the name `log` and a part of the log as JSON in its data. The stream ends after a part
/// that is not `IsRunning`. A client that reconnects with the id of the last event in `Last-Event-ID`
/// misses nothing. After a short part, text is gathered for 200 ms. If another engine runs the test again,
/// its log begins at 0. Without a log, and once it has become an artifact, `LeaseId` is null. `0` instead of
/// the id of the project is the permanent URL.
#[utoipa::path(
    get, operation_id = "watch_live_log", tag = "Test reports", 
    params(Position, StreamQuery, LastEventId),
    path = "/api/projects/{projectId}/executions/{executionId}/reports/{testReportId}/log/stream",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.LiveLogService/GetLiveLog"))),
    responses((
        status = OK, description = "The parts of the log",
        content((LiveLog = "text/event-stream", example = json!(example()))),
    )),
)]
async fn stream(
    State(logs): State<LiveLogs>,
    watched: WatchedCaller,
    Path(path): Path<ReportPath>,
    Query(position): Query<Position>,
    LastEventId(last): LastEventId,
) -> Result<Response, Problem> {
    let position = last.as_deref().map(after).transpose()?.unwrap_or(position);
    let request = request(path, position);
    let caller = watched.caller.clone();
    // Fails before the response begins, if the test report does not exist.
    logs.clone().get_live_log(caller.call(request.clone())).await?;
    let request = GetLiveLogRequest { wait_in_sec: Some(WAIT), ..request };
    let reader = Reader { logs, caller, request, is_over: false, not_before: Instant::now() };
    Ok(event_stream::respond(stream::unfold(reader, Reader::next), watched))
}

/// The next parts of a log.
struct Reader {
    logs: LiveLogs,
    caller: Caller,
    /// The request for the next part, which waits for it.
    request: GetLiveLogRequest,
    is_over: bool,
    /// Time before which the next part is not read.
    not_before: Instant,
}

impl Reader {
    /// Waits for the next part. Returns none after the last one.
    async fn next(mut self) -> Option<(Result<Event, Failure>, Self)> {
        if self.is_over {
            return None;
        }
        sleep_until(self.not_before).await;
        loop {
            let call = self.caller.call_within(LONG_POLL, self.request.clone());
            let log = match self.logs.get_live_log(call).await {
                Ok(log) => log.into_inner(),
                Err(status) => {
                    self.is_over = true;
                    return Some((Err(status.into()), self));
                }
            };
            self.request.lease_id.clone_from(&log.lease_id);
            self.request.offset = Some(log.next_offset);
            self.is_over = !log.is_running;
            if !log.text.is_empty() || self.is_over {
                if log.text.len() < LARGE {
                    self.not_before = Instant::now() + GATHERED;
                }
                return Some((event(&log), self));
            }
        }
    }
}

fn event(log: &LiveLog) -> Result<Event, Failure> {
    Ok(event_stream::event().id(id(log)).event("log").json_data(log)?)
}

/// Returns the position after a part. It names no lease without a log.
fn id(log: &LiveLog) -> String {
    format!("{}:{}", log.lease_id.as_deref().unwrap_or_default(), log.next_offset)
}

/// Returns an example of an event: the first line of a log.
fn example() -> Value {
    let text = "09:30:04 The bank said yes\n";
    let log = LiveLog {
        lease_id: Some("019cade2-11c0-749a-870a-493890d9490a".to_owned()),
        engine: "engine-7".to_owned(),
        offset: 0,
        next_offset: 27,
        text: text.to_owned(),
        is_running: true,
    };
    event_stream::example("log", &id(&log), &json!(log))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_continues_after_each_of_its_events() {
        let log =
            LiveLog { lease_id: Some("a-lease".to_owned()), next_offset: 27, ..LiveLog::default() };
        for (log, lease, offset) in [(log, Some("a-lease"), 27), (LiveLog::default(), None, 0)] {
            let position = after(&id(&log)).unwrap();
            assert_eq!((position.lease_id.as_deref(), position.offset), (lease, Some(offset)));
        }
    }

    #[test]
    fn no_event_has_another_id() {
        for id in [
            "",
            "a-lease",
            "27",
            "a-lease:",
            "a-lease:-27",
            ":-1",
            "a-lease:x",
            "a-lease:9999999999",
        ] {
            assert!(after(id).is_err(), "{id:?}");
        }
    }
}
