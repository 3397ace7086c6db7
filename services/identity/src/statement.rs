//! `StatementService`: what a customer owes for its hours of execution in a month.

mod rules;
mod store;

use assay_auth::Caller;
use assay_proto::{
    Fault,
    identity::{GetStatementRequest, Statement, statement_service_server},
};
use assay_records::Check;
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::customer;

pub(crate) struct StatementService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl statement_service_server::StatementService for StatementService {
    async fn get_statement(
        &self,
        request: Request<GetStatementRequest>,
    ) -> Result<Response<Statement>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let mut check = Check::default();
        let month = check.month("month", Some(&request.month));
        // A sum of what others have checked, which has no maximum.
        check.at_least("DurationInH", request.duration_in_h, 0.0);
        check.done()?;
        let month = month.ok_or_else(|| Fault::internal("a month was not read"))?;
        let customer = customer::store::get(&self.db, caller.customer).await?;
        let term = store::term(&self.db, month, customer.due_days).await?;
        Ok(Response::new(rules::statement(customer, &request, term)?))
    }
}
