//! `…/testsets/{testSetId}/backtests`, of gates, and `…/monitors/backtests`.

use assay_auth::Caller;
use assay_proto::execution::{
    Backtest, BacktestGateRequest, BacktestInput, BacktestMonitorRequest, MonitorBacktest,
    MonitorBacktestInput,
};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    path::Path,
    problem::Problem,
    response::{Json, Resource},
    services::{Backtests, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(backtest)).routes(routes!(backtest_monitor))
}

impl Resource for Backtest {}

impl Resource for MonitorBacktest {}

/// Returns what a gate would have decided about the ended executions of a test set: those that it would have
/// blocked, or let through.
///
/// Nothing is stored. Each execution is judged by the results that it had, so the present gate changes no
/// verdict that it has given itself. With other thresholds of flakiness, failures are judged again, by the
/// history that they had then. The latest executions come first. If there are too many of them for one
/// request, send the `NextCursor` of the response as `Cursor` of the next request.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/testsets/{testSetId}/backtests",
    operation_id = "backtest_gate", tag = "Test sets", request_body = BacktestInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.BacktestService/BacktestGate"))),
    responses((status = OK, description = "The verdicts", body = Backtest)),
)]
async fn backtest(
    State(mut backtests): State<Backtests>,
    caller: Caller,
    Path((project_id, test_set_id)): Path<(String, String)>,
    Body(input): Body<BacktestInput>,
) -> Result<Json<Backtest>, Problem> {
    let request = BacktestGateRequest { project_id, test_set_id, backtest: Some(input) };
    Ok(Json(backtests.backtest_gate(caller.call(request)).await?.into_inner()))
}

/// Returns what a monitor would have done after the ended executions of a project: the test cases that it would
/// have muted or skipped, and when they recovered.
///
/// Nothing is stored. The monitor begins with the first execution of the period, and judges the runs that the
/// test cases had then. If there are too many executions for one request, `LeftFrom` of the response is the time
/// of the first one that is left.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/monitors/backtests",
    operation_id = "backtest_monitor", tag = "Monitors", request_body = MonitorBacktestInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.BacktestService/BacktestMonitor"))),
    responses((status = OK, description = "The actions", body = MonitorBacktest)),
)]
async fn backtest_monitor(
    State(mut backtests): State<Backtests>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<MonitorBacktestInput>,
) -> Result<Json<MonitorBacktest>, Problem> {
    let request = BacktestMonitorRequest { project_id, backtest: Some(input) };
    Ok(Json(backtests.backtest_monitor(caller.call(request)).await?.into_inner()))
}
