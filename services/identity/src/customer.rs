//! `CustomerService`: who projects and users belong to.

pub(crate) mod store;

use assay_auth::Caller;
use assay_proto::identity::{Customer, customer_service_server};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::user_group;

pub(crate) struct CustomerService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl customer_service_server::CustomerService for CustomerService {
    async fn get_current_customer(
        &self,
        request: Request<()>,
    ) -> Result<Response<Customer>, Status> {
        let caller = Caller::of(&request)?;
        let customer = store::get(&self.db, caller.customer).await?;
        let user_groups = user_group::store::list(&self.db, caller.customer).await?;
        Ok(Response::new(Customer { user_groups, ..customer }))
    }
}
