//! Pools in PostgreSQL. Every statement is bound to one customer. Values are read and written as they are stored,
//! with encrypted secrets.

use assay_proto::{
    CustomerId, Fault, OnConstraint, PoolId, ProjectId,
    execution::{Pool, PoolValue},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgPool, PgTransaction, Postgres, postgres::PgArguments,
    query::QueryAs, types::Json,
};

use super::rules::MOST;

const NAME_TAKEN: Fault = Fault::AlreadyExists("pool with this name");

fn select(rest: &'static str) -> QueryAs<'static, Postgres, Pool, PgArguments> {
    let columns = Pool::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from pool where customer_id = $1 and project_id = $2 {rest}"
    )))
}

/// Lists the pools of a project, newest first.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    slice: &Slice,
) -> Result<Rows<Pool>, Fault> {
    let pools = select(
        "and id < $3 and ($4::text is null or name ilike $4)
         order by id desc
         limit $5",
    );
    let pools = pools
        .bind(customer)
        .bind(project)
        .bind(slice.before()?)
        .bind(slice.pattern.as_deref())
        .bind(slice.limit);
    slice.read(pools.fetch(db)).await
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: PoolId,
) -> Result<Pool, Fault> {
    let pool = select("and id = $3").bind(customer).bind(project).bind(id);
    pool.fetch_optional(db).await?.ok_or(Fault::NotFound("pool"))
}

/// Reads and locks a pool. Executions that need it start before or after the transaction.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: PoolId,
) -> Result<Pool, Fault> {
    let pool = select("and id = $3 for update").bind(customer).bind(project).bind(id);
    pool.fetch_optional(&mut **tx).await?.ok_or(Fault::NotFound("pool"))
}

/// Stores a pool. Fails if the project has too many, or another one with its name.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: PoolId,
    name: &str,
    values: &[PoolValue],
) -> Result<Pool, Fault> {
    let returned = Pool::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "insert into pool (customer_id, project_id, id, name, values)
         values ($1, $2, $3, $4, $5)
         returning {returned}"
    )));
    let insert = insert.bind(customer).bind(project).bind(id).bind(name).bind(Json(values));
    let inserted = insert.fetch_one(&mut **tx).await;
    let inserted: Pool = inserted.on_constraint("pool_name_key", NAME_TAKEN)?;
    let count =
        sqlx::query_scalar("select count(*) from pool where customer_id = $1 and project_id = $2");
    let count: i64 = count.bind(customer).bind(project).fetch_one(&mut **tx).await?;
    if count <= MOST {
        return Ok(inserted);
    }
    let reason = format!("a project may have {MOST} pools: delete or change some");
    Err(Fault::Refused { code: "too_many_pools", reason })
}

/// Writes the fields of a locked pool.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: PoolId,
    name: &str,
    values: &[PoolValue],
) -> Result<Pool, Fault> {
    let returned = Pool::COLUMNS;
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update pool set name = $4, values = $5, revision = revision + 1
         where customer_id = $1 and project_id = $2 and id = $3
         returning {returned}"
    )));
    let update = update.bind(customer).bind(project).bind(id).bind(name).bind(Json(values));
    update.fetch_one(&mut **tx).await.on_constraint("pool_name_key", NAME_TAKEN)
}

/// Deletes a locked pool.
pub(super) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: PoolId,
) -> Result<(), Fault> {
    let delete =
        sqlx::query("delete from pool where customer_id = $1 and project_id = $2 and id = $3");
    delete.bind(customer).bind(project).bind(id).execute(&mut **tx).await?;
    Ok(())
}
