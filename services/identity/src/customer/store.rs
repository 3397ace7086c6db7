//! Customers in PostgreSQL.

use assay_proto::{CustomerId, Fault, OnConstraint, identity::Customer};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments};

/// Reads customers, without their user groups; `rest` picks and orders them.
fn select(rest: &'static str) -> sqlx::query::QueryAs<'static, Postgres, Customer, PgArguments> {
    sqlx::query_as(AssertSqlSafe(format!(
        "select id, name, account_number, address, cost_center, currency, tax, discounts,
                minimum_consumption_in_h, due_days, technical_name, subdomain, appliances,
                revision::text as data_version, archived
         from customer {rest}"
    )))
}

pub(crate) async fn get(db: impl PgExecutor<'_>, customer: CustomerId) -> Result<Customer, Fault> {
    select("where id = $1 and deleted_at is null")
        .bind(customer)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("customer"))
}

/// Whether there is, or ever was, any customer.
pub(crate) async fn any(db: impl PgExecutor<'_>) -> Result<bool, Fault> {
    Ok(sqlx::query_scalar("select exists (select from customer)").fetch_one(db).await?)
}

/// Whether there is such a customer to work for.
pub(crate) async fn is_open(db: impl PgExecutor<'_>, customer: CustomerId) -> Result<bool, Fault> {
    let open = sqlx::query_scalar(
        "select exists
            (select from customer where id = $1 and not archived and deleted_at is null)",
    );
    Ok(open.bind(customer).fetch_one(db).await?)
}

/// Adds a customer with what of `customer` a client may write.
pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    id: CustomerId,
    customer: &Customer,
) -> Result<(), Fault> {
    sqlx::query(
        "insert into customer (id, name, account_number, address, cost_center, currency, tax,
                               discounts, minimum_consumption_in_h, due_days, technical_name,
                               subdomain, appliances)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
    )
    .bind(id)
    .bind(&customer.name)
    .bind(&customer.account_number)
    .bind(&customer.address)
    .bind(&customer.cost_center)
    .bind(&customer.currency)
    .bind(customer.tax)
    .bind(&customer.discounts)
    .bind(customer.minimum_consumption_in_h)
    .bind(customer.due_days)
    .bind(&customer.technical_name)
    .bind(&customer.subdomain)
    .bind(&customer.appliances)
    .execute(&mut **tx)
    .await
    .on_constraint("customer_subdomain_key", Fault::AlreadyExists("customer"))?;
    Ok(())
}
