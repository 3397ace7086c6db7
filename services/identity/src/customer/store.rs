//! Customers in PostgreSQL.

use assay_proto::{
    CustomerId, Fault, InputColumns, OnConstraint, Rendered,
    identity::{Customer, CustomerEntry, CustomerInput, UserGroup},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction};

const SUBDOMAIN_TAKEN: Fault = Fault::AlreadyExists("customer with this subdomain");

/// Returns the columns of a customer with its user groups.
fn columns() -> String {
    let (columns, group) = (Customer::COLUMNS, UserGroup::JSON);
    format!(
        "{columns}, (
             select coalesce(jsonb_agg({group} order by name, id), '[]') from user_group
             where customer_id = customer.id and deleted_at is null
         ) as user_groups"
    )
}

pub(crate) async fn get(db: impl PgExecutor<'_>, id: CustomerId) -> Result<Customer, Fault> {
    let columns = columns();
    let customer = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from customer where id = $1 and deleted_at is null"
    )));
    customer.bind(id).fetch_optional(db).await?.ok_or(Fault::NotFound("customer"))
}

/// Lists a slice of the active or archived customers, newest first.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    archived: bool,
    slice: &Slice,
) -> Result<Rows<Rendered<CustomerEntry>>, Fault> {
    let columns = CustomerEntry::COLUMNS;
    let customers = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from customer
         where id < $1 and archived = $2 and deleted_at is null
           and ($3::text is null or name ilike $3)
         order by id desc
         limit $4"
    )));
    let customers = customers.bind(slice.before()?).bind(archived).bind(&slice.pattern);
    slice.read(customers.bind(slice.limit).fetch(db)).await
}

/// Reads and locks a customer. Tokens are issued meanwhile; those that must end are revoked.
pub(super) async fn lock(tx: &mut PgTransaction<'_>, id: CustomerId) -> Result<Customer, Fault> {
    let columns = columns();
    let customer = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from customer where id = $1 and deleted_at is null for update"
    )));
    customer.bind(id).fetch_optional(&mut **tx).await?.ok_or(Fault::NotFound("customer"))
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

/// Returns those of some customers that were deleted.
pub(super) async fn deleted(
    db: impl PgExecutor<'_>,
    ids: &[CustomerId],
) -> Result<Vec<CustomerId>, Fault> {
    let deleted = "select id from customer where id = any($1) and deleted_at is not null";
    Ok(sqlx::query_scalar(deleted).bind(ids).fetch_all(db).await?)
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
    let (columns, values) = (CustomerInput::COLUMNS, CustomerInput::values(2));
    let returned = CustomerEntry::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into customer (id, {columns}) values ($1, {values}) returning {returned}"
    )));
    let inserted = customer.bind(insert.bind(id)).fetch_one(&mut **tx).await;
    inserted.on_constraint("customer_subdomain_key", SUBDOMAIN_TAKEN)
}

/// Marks a customer as the operator's.
pub(crate) async fn set_operator(tx: &mut PgTransaction<'_>, id: CustomerId) -> Result<(), Fault> {
    sqlx::query("update customer set is_operator = true where id = $1")
        .bind(id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Writes the fields of a locked customer.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    id: CustomerId,
    customer: &CustomerInput,
) -> Result<Customer, Fault> {
    let (assignments, returned) = (CustomerInput::assignments(2), columns());
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update customer set {assignments}, revision = revision + 1
         where id = $1
         returning {returned}"
    )));
    let updated = customer.bind(update.bind(id)).fetch_one(&mut **tx).await;
    updated.on_constraint("customer_subdomain_key", SUBDOMAIN_TAKEN)
}

pub(super) async fn delete(tx: &mut PgTransaction<'_>, id: CustomerId) -> Result<(), Fault> {
    sqlx::query("update customer set deleted_at = now(), revision = revision + 1 where id = $1")
        .bind(id)
        .execute(&mut **tx)
        .await?;
    Ok(())
}
