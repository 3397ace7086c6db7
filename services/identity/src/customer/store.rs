//! Customers in PostgreSQL.

use assay_proto::{
    CustomerId, Fault, OnConstraint,
    identity::{Customer, CustomerEntry, CustomerInput},
};
use assay_runtime::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgTransaction, Postgres, postgres::PgArguments, query::QueryAs,
};

const COLUMNS: &str = "id, name, account_number, address, cost_center, currency, tax, discounts,
     minimum_consumption_in_h, due_days, technical_name, subdomain, appliances,
     revision::text as data_version, archived";

/// Selects customers without their user groups; `rest` adds conditions and the order.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, Customer, PgArguments> {
    sqlx::query_as(AssertSqlSafe(format!("select {COLUMNS} from customer {rest}")))
}

pub(crate) async fn get(db: impl PgExecutor<'_>, customer: CustomerId) -> Result<Customer, Fault> {
    select("where id = $1 and deleted_at is null")
        .bind(customer)
        .fetch_optional(db)
        .await?
        .ok_or(Fault::NotFound("customer"))
}

/// Lists a slice of the active or archived customers, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    archived: bool,
    slice: &Slice,
) -> Result<Rows<CustomerEntry>, Fault> {
    let statement = format!(
        "select {COLUMNS} from customer
         where id < $1 and archived = $2 and deleted_at is null
           and ($3::text is null or name ilike $3)
         order by id desc
         limit $4"
    );
    let customers = sqlx::query_as(AssertSqlSafe(statement))
        .bind(slice.before()?)
        .bind(archived)
        .bind(&slice.pattern)
        .bind(slice.limit)
        .fetch(db);
    slice.read(customers).await
}

/// Reads and locks a customer. The lock also blocks new tokens for it.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<Customer, Fault> {
    select("where id = $1 and deleted_at is null for update")
        .bind(customer)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("customer"))
}

/// Locks the assignment of permissions to the customer's users.
pub(crate) async fn lock_managers(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    sqlx::query("select from customer where id = $1 and deleted_at is null for no key update")
        .bind(customer)
        .fetch_optional(&mut **tx)
        .await?
        .map(drop)
        .ok_or(Fault::NotFound("customer"))
}

/// Prevents the deletion of a customer until the transaction ends. Fails if it does not exist.
pub(crate) async fn lock_shared(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    sqlx::query("select from customer where id = $1 and deleted_at is null for key share")
        .bind(customer)
        .fetch_optional(&mut **tx)
        .await?
        .map(drop)
        .ok_or(Fault::NotFound("customer"))
}

/// Returns whether a customer exists or has existed.
pub(crate) async fn any_exists(db: impl PgExecutor<'_>) -> Result<bool, Fault> {
    Ok(sqlx::query_scalar("select exists (select from customer)").fetch_one(db).await?)
}

/// Returns whether a customer exists and is not archived.
pub(crate) async fn is_active(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<bool, Fault> {
    let active = sqlx::query_scalar(
        "select exists
            (select from customer where id = $1 and not archived and deleted_at is null)",
    );
    Ok(active.bind(customer).fetch_one(db).await?)
}

/// Fails for the operator's customer.
pub(super) async fn reject_operator(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    let is_operator = sqlx::query_scalar("select is_operator from customer where id = $1");
    if is_operator.bind(customer).fetch_one(db).await? {
        return Err(Fault::Conflict {
            code: "operator_customer",
            reason: "the operator's customer cannot be archived or deleted".to_owned(),
        });
    }
    Ok(())
}

pub(crate) async fn insert(
    tx: &mut PgTransaction<'_>,
    id: CustomerId,
    customer: &CustomerInput,
) -> Result<CustomerEntry, Fault> {
    let statement = format!(
        "insert into customer (id, name, subdomain, appliances, account_number, address,
                               cost_center, currency, tax, discounts, minimum_consumption_in_h,
                               due_days, technical_name)
         values ($1, $2, $3, $4, $5, $6, $7, coalesce($8, 'EUR'), coalesce($9, 0), $10,
                 coalesce($11, 0), coalesce($12, 30), $13)
         returning {COLUMNS}"
    );
    sqlx::query_as(AssertSqlSafe(statement))
        .bind(id)
        .bind(&customer.name)
        .bind(&customer.subdomain)
        .bind(&customer.appliances)
        .bind(&customer.account_number)
        .bind(&customer.address)
        .bind(&customer.cost_center)
        .bind(&customer.currency)
        .bind(customer.tax)
        .bind(&customer.discounts)
        .bind(customer.minimum_consumption_in_h)
        .bind(customer.due_days)
        .bind(&customer.technical_name)
        .fetch_one(&mut **tx)
        .await
        .on_constraint(
            "customer_subdomain_key",
            Fault::AlreadyExists("customer with this subdomain"),
        )
}

/// Marks a customer as the operator's.
pub(crate) async fn set_operator(tx: &mut PgTransaction<'_>, id: CustomerId) -> Result<(), Fault> {
    sqlx::query("update customer set is_operator = true where id = $1")
        .bind(id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Writes the changeable fields of a locked customer.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    id: CustomerId,
    customer: &CustomerInput,
) -> Result<Customer, Fault> {
    let statement = format!(
        "update customer
         set name = $2, subdomain = $3, appliances = $4, archived = $5, account_number = $6,
             address = $7, cost_center = $8, currency = coalesce($9, currency),
             tax = coalesce($10, tax), discounts = $11,
             minimum_consumption_in_h = coalesce($12, minimum_consumption_in_h),
             due_days = coalesce($13, due_days), technical_name = $14, revision = revision + 1
         where id = $1
         returning {COLUMNS}"
    );
    sqlx::query_as(AssertSqlSafe(statement))
        .bind(id)
        .bind(&customer.name)
        .bind(&customer.subdomain)
        .bind(&customer.appliances)
        .bind(customer.archived)
        .bind(&customer.account_number)
        .bind(&customer.address)
        .bind(&customer.cost_center)
        .bind(&customer.currency)
        .bind(customer.tax)
        .bind(&customer.discounts)
        .bind(customer.minimum_consumption_in_h)
        .bind(customer.due_days)
        .bind(&customer.technical_name)
        .fetch_one(&mut **tx)
        .await
        .on_constraint(
            "customer_subdomain_key",
            Fault::AlreadyExists("customer with this subdomain"),
        )
}

pub(super) async fn delete(tx: &mut PgTransaction<'_>, id: CustomerId) -> Result<(), Fault> {
    sqlx::query("update customer set deleted_at = now(), revision = revision + 1 where id = $1")
        .bind(id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
