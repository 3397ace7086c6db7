//! The gRPC service of execution times.

use assay_auth::Caller;
use assay_proto::{
    Fault, ProjectId,
    execution::{
        ExecutionTimeBatch, GetMonthlyExecutionTimeRequest, ListExecutionTimesRequest,
        MonthlyExecutionTime, execution_time_service_server,
    },
};
use assay_records::{Check, Month};
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::store;

/// Maximum number of months in a list.
const MOST_MONTHS: i32 = 24;

/// The gRPC service of execution times.
pub(crate) struct ExecutionTimeService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl execution_time_service_server::ExecutionTimeService for ExecutionTimeService {
    type ListExecutionTimesStream = Batches<ExecutionTimeBatch>;

    async fn list_execution_times(
        &self,
        request: Request<ListExecutionTimesRequest>,
    ) -> Result<Response<Self::ListExecutionTimesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ListExecutionTimesRequest { from, to, project_id, page } = request.into_inner();
        let project = ProjectId::from_field_if_any("projectId", project_id.as_deref())?;
        let months = self.months(from.as_deref(), to.as_deref()).await?;
        let db = self.db.clone();
        answer(page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, months, project, &slice).await }
        })
        .await
    }

    async fn get_monthly_execution_time(
        &self,
        request: Request<GetMonthlyExecutionTimeRequest>,
    ) -> Result<Response<MonthlyExecutionTime>, Status> {
        let customer = Caller::of(&request)?.customer;
        let mut check = Check::default();
        let month = check.month("month", Some(&request.get_ref().month));
        check.done()?;
        let month = month.ok_or_else(|| Fault::internal("a month was not read"))?;
        Ok(Response::new(store::of_month(&self.db, customer, month).await?))
    }
}

impl ExecutionTimeService {
    /// Returns the first and the last month of a list.
    async fn months(&self, from: Option<&str>, to: Option<&str>) -> Result<(Month, Month), Fault> {
        let mut check = Check::default();
        let (from, to) = (check.month("from", from), check.month("to", to));
        check.done()?;
        let to = match to {
            Some(to) => to,
            None => store::current_month(&self.db).await?,
        };
        let from = from.unwrap_or(to);
        if !(1..=MOST_MONTHS).contains(&from.count_to(to)) {
            let problem =
                format!("must not be after `to`, nor {MOST_MONTHS} months or more before it");
            return Err(Fault::invalid("from", problem));
        }
        Ok((from, to))
    }
}
