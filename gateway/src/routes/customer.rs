//! `/api/management/customers`.

use assay_auth::Caller;
use assay_proto::identity::{
    CreateCustomerRequest, Customer, CustomerEntry, CustomerInput, DeleteCustomerRequest,
    GetCustomerRequest, ListCustomersRequest, UpdateCustomerRequest,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Customers, Services},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(list_archived))
        .routes(routes!(get_current))
        .routes(routes!(get, update, delete))
}

impl Resource for Customer {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Resource for CustomerEntry {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for CustomerInput {}

/// Lists the customers that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/management/customers", operation_id = "list_customers", tag = "Customers",
    params(Listing),
    extensions(("x-grpc-method" = json!("/assay.identity.v1.CustomerService/ListCustomers"))),
    responses((status = OK, description = "The customers", body = [CustomerEntry])),
)]
async fn list(
    State(customers): State<Customers>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(customers, &caller, listing, false).await
}

/// Lists the customers in the archive, newest first.
#[utoipa::path(
    get, path = "/api/management/customers/archive", operation_id = "list_customers_in_archive",
    tag = "Customers", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.identity.v1.CustomerService/ListCustomers"))),
    responses((status = OK, description = "The customers", body = [CustomerEntry])),
)]
async fn list_archived(
    State(customers): State<Customers>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(customers, &caller, listing, true).await
}

async fn list_of(
    mut customers: Customers,
    caller: &Caller,
    listing: Listing,
    archived: bool,
) -> Result<List, Problem> {
    let request = ListCustomersRequest { archived, page: Some(listing.page()) };
    listing.respond(customers.list_customers(caller.call(request)).await?).await
}

/// Returns the customer of the caller with its user groups.
#[utoipa::path(
    get, path = "/api/management/customers/current", operation_id = "get_current_customer",
    tag = "Customers",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.CustomerService/GetCurrentCustomer"))),
    responses((status = OK, description = "The customer", body = Customer)),
)]
async fn get_current(
    State(mut customers): State<Customers>,
    caller: Caller,
) -> Result<Json<Customer>, Problem> {
    let customer = customers.get_current_customer(caller.call(())).await?;
    Ok(Json(customer.into_inner()))
}

/// Returns a customer with its user groups.
#[utoipa::path(
    get, path = "/api/management/customers/{customerId}", operation_id = "get_customer",
    tag = "Customers",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.CustomerService/GetCustomer"))),
    responses((status = OK, description = "The customer", body = Customer)),
)]
async fn get(
    State(mut customers): State<Customers>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Customer>, Problem> {
    let customer = customers.get_customer(caller.call(GetCustomerRequest { id })).await?;
    Ok(Json(customer.into_inner()))
}

/// Adds a customer, with the groups Administrators, Testers and Viewers.
#[utoipa::path(
    post, path = "/api/management/customers", operation_id = "create_customer",
    tag = "Customers", request_body = CustomerInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.CustomerService/CreateCustomer"))),
    responses((status = CREATED, description = "The new customer", body = CustomerEntry)),
)]
async fn create(
    State(mut customers): State<Customers>,
    caller: Caller,
    Body(input): Body<CustomerInput>,
) -> Result<Created<Json<CustomerEntry>>, Problem> {
    let request = CreateCustomerRequest { customer: Some(input) };
    let customer = customers.create_customer(caller.call(request)).await?.into_inner();
    Ok(Created(format!("/api/management/customers/{}", customer.id), Json(customer)))
}

/// Changes a customer, or moves it into the archive or out of it.
///
/// Archiving a customer revokes its tokens, and nobody can log in to it.
#[utoipa::path(
    put, path = "/api/management/customers/{customerId}", operation_id = "update_customer",
    tag = "Customers", request_body = CustomerInput,
    extensions(("x-grpc-method" = json!("/assay.identity.v1.CustomerService/UpdateCustomer"))),
    responses((status = OK, description = "The changed customer", body = Customer)),
)]
async fn update(
    State(mut customers): State<Customers>,
    caller: Caller,
    Path(id): Path<String>,
    Update { changes, fields, data_version, .. }: Update<CustomerInput>,
) -> Result<Json<Customer>, Problem> {
    let request = UpdateCustomerRequest { id, data_version, changes: Some(changes), fields };
    Ok(Json(customers.update_customer(caller.call(request)).await?.into_inner()))
}

/// Deletes a customer and revokes its tokens.
#[utoipa::path(
    delete, path = "/api/management/customers/{customerId}", operation_id = "delete_customer",
    tag = "Customers",
    extensions(("x-grpc-method" = json!("/assay.identity.v1.CustomerService/DeleteCustomer"))),
    responses((status = NO_CONTENT, description = "The customer has been deleted")),
)]
async fn delete(
    State(mut customers): State<Customers>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    customers.delete_customer(caller.call(DeleteCustomerRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
