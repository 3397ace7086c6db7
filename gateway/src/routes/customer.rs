//! `/api/management/customers`.

use assay_auth::Caller;
use assay_proto::identity::Customer;
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    answer::{Answer, Record},
    problem::Problem,
    services::{Customers, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(get_current))
}

impl Answer for Customer {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

/// Returns the customer that the caller works for, with its user groups.
#[utoipa::path(
    get, path = "/api/management/customers/current", operation_id = "get_current_customer",
    tag = "Customers",
    responses((status = OK, description = "The customer", body = Customer)),
)]
async fn get_current(
    State(mut customers): State<Customers>,
    caller: Caller,
) -> Result<Record<Customer>, Problem> {
    let customer = customers.get_current_customer(caller.call(())).await?;
    Ok(Record(customer.into_inner()))
}
