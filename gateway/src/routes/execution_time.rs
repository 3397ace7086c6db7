//! `/api/executiontimes`, and the statements that follow from them.

use assay_auth::Caller;
use assay_proto::{
    execution::{ExecutionTime, GetMonthlyExecutionTimeRequest, ListExecutionTimesRequest},
    identity::{GetStatementRequest, Statement},
};
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    problem::Problem,
    query::Query,
    response::{Json, Resource},
    services::{ExecutionTimes, Services, Statements},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get_statement))
}

impl Resource for Statement {}

/// The months and the project of the executions.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct Filter {
    /// First month in UTC, as `yyyy-MM`; by default `to`.
    #[param(example = "2026-11")]
    from: Option<String>,
    /// Last month in UTC, as `yyyy-MM`; by default the current one. At most 24 months are listed.
    #[param(example = "2026-11")]
    to: Option<String>,
    /// Return only times of this project.
    #[param(format = Uuid)]
    project_id: Option<String>,
}

/// Lists the hours of execution of the customer by month, project, test set and target group, the latest
/// month first.
///
/// An execution counts in the month in which it ended, about a second after its end, with the durations
/// of its instances. Neither retention nor the deletion of its project changes the sums. Results that were
/// imported after the fact, and launches that were merged into another one, do not count. `q` searches in
/// names of test sets.
#[utoipa::path(
    get, path = "/api/executiontimes", operation_id = "list_execution_times", tag = "Customers",
    params(Filter, Listing),
    extensions(("x-grpc-method" =
        json!("/assay.execution.v1.ExecutionTimeService/ListExecutionTimes"))),
    responses((status = OK, description = "The execution times", body = [ExecutionTime])),
)]
async fn list(
    State(mut times): State<ExecutionTimes>,
    caller: Caller,
    Query(Filter { from, to, project_id }): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListExecutionTimesRequest { from, to, project_id, page: Some(listing.page()) };
    listing.respond(times.list_execution_times(caller.call(request)).await?).await
}

/// The month of a statement.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Month {
    /// Month in UTC, as `yyyy-MM`.
    #[param(example = "2026-11")]
    month: String,
}

/// Returns the statement of a month for the customer: its hours of execution, by the figures of its record.
///
/// The hours are charged at `PricePerHour`, at least `MinimumConsumptionInH`, less `Discounts`, plus `Tax`.
/// A customer without `PricePerHour` gets the hours only.
#[utoipa::path(
    get, path = "/api/management/customers/current/statement", operation_id = "get_statement",
    tag = "Customers", params(Month),
    extensions(("x-grpc-method" = json!("/assay.identity.v1.StatementService/GetStatement"))),
    responses((status = OK, description = "The statement", body = Statement)),
)]
async fn get_statement(
    State(mut times): State<ExecutionTimes>,
    State(mut statements): State<Statements>,
    caller: Caller,
    Query(Month { month }): Query<Month>,
) -> Result<Json<Statement>, Problem> {
    let request = GetMonthlyExecutionTimeRequest { month: month.clone() };
    let time = times.get_monthly_execution_time(caller.call(request)).await?.into_inner();
    let request = GetStatementRequest {
        month,
        executions: time.executions,
        instances: time.instances,
        duration_in_h: time.duration_in_h,
        is_partial: time.is_partial,
    };
    Ok(Json(statements.get_statement(caller.call(request)).await?.into_inner()))
}
