//! Artifacts in PostgreSQL. Every statement is bound to one customer.

use std::collections::HashMap;

use assay_proto::{
    ArtifactId, CustomerId, ExecutionId, Fault, LeaseId, OnConstraint, ShareLinkId, TestReportId,
    execution::ArtifactEntry,
};
use assay_rpc::list::Slice;
use futures::future::BoxFuture;
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgTransaction};
use uuid::Uuid;

use super::stray::taken;

/// A change that is committed together with an artifact, or not at all.
pub(crate) type Companion = Box<
    dyn for<'t> Fn(&'t mut PgTransaction<'static>) -> BoxFuture<'t, Result<(), Fault>>
        + Send
        + Sync,
>;

/// An artifact to store.
pub(crate) struct NewArtifact {
    pub(crate) customer: CustomerId,
    pub(crate) execution: ExecutionId,
    /// The record in which the name is unique.
    pub(crate) owner: Uuid,
    /// The lease that the file is uploaded for. It must not be lost.
    pub(crate) lease: Option<LeaseId>,
    pub(crate) name: String,
    pub(crate) content_type: String,
    pub(crate) announced: Announced,
    /// Change of its transaction beside it, if there is one. If it fails, the file is not stored.
    pub(crate) companion: Option<Companion>,
}

/// The facts about a file that its client has stated before it arrives.
#[derive(Default)]
pub(crate) struct Announced {
    /// Size in bytes, or 0.
    pub(crate) size: i64,
    /// SHA-256 that the file must have.
    pub(crate) sha256: Option<[u8; 32]>,
}

/// A stored artifact, as far as a download needs it.
#[derive(FromRow)]
pub(super) struct StoredArtifact {
    pub(super) execution_id: ExecutionId,
    pub(super) content_type: String,
    /// In bytes.
    pub(super) size: i64,
}

/// Locks an execution: until the transaction ends, its results do not expire and its leases do not
/// end. Returns whether the execution has ended, and the time as [`now`] does.
pub(super) async fn lock_execution(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(bool, i64), Fault> {
    sqlx::query_as(
        "select completion_date_time is not null, extract(epoch from now())::bigint
         from live_execution
         where customer_id = $1 and id = $2 and expired_at is null
         for share",
    )
    .bind(customer)
    .bind(execution)
    .fetch_optional(&mut **tx)
    .await?
    .ok_or(Fault::NotFound("execution"))
}

/// Makes a stored file an artifact. Returns the artifact that it replaces, if any, whose file becomes stray. Fails if
/// the stored file is being removed.
pub(super) async fn replace(
    tx: &mut PgTransaction<'_>,
    new: &NewArtifact,
    id: ArtifactId,
    size: i64,
) -> Result<Option<ArtifactId>, Fault> {
    let replaced = sqlx::query_scalar(
        "with replaced as (
             delete from artifact where customer_id = $1 and owner_id = $2 and name = $3
             returning id
         )
         insert into stray_file (customer_id, execution_id, artifact_id, size)
         select $1, $4, id, 0 from replaced
         returning artifact_id",
    )
    .bind(new.customer)
    .bind(new.owner)
    .bind(&new.name)
    .bind(new.execution)
    .fetch_optional(&mut **tx)
    .await?;
    let adopted = sqlx::query(
        "with added as (
             insert into artifact (customer_id, id, execution_id, owner_id, name, content_type, size)
             values ($1, $2, $3, $4, $5, $6, $7)
         )
         delete from stray_file
         where customer_id = $1 and artifact_id = $2 and not is_removed",
    )
    .bind(new.customer)
    .bind(id)
    .bind(new.execution)
    .bind(new.owner)
    .bind(&new.name)
    .bind(&new.content_type)
    .bind(size)
    .execute(&mut **tx)
    .await
    .on_constraint("artifact_name_key", busy())?;
    taken(adopted.rows_affected())?;
    Ok(replaced)
}

/// Returns whether a share link grants access to an execution.
pub(super) async fn is_shared(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    id: ShareLinkId,
) -> Result<bool, Fault> {
    let is_live = sqlx::query_scalar(
        "select exists (
             select from live_share_link where customer_id = $1 and execution_id = $2 and id = $3
         )",
    );
    Ok(is_live.bind(customer).bind(execution).bind(id).fetch_one(db).await?)
}

/// Returns the conflict of two concurrent uploads with the same name.
fn busy() -> Fault {
    Fault::Conflict {
        code: "artifact_in_use",
        reason: "another file of that name is being uploaded".to_owned(),
    }
}

/// Finds the artifacts with these names that the results of a report refer to.
pub(super) async fn find_by_names(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    report: TestReportId,
    names: &[String],
) -> Result<HashMap<String, ArtifactId>, Fault> {
    let found: Vec<(String, ArtifactId)> = sqlx::query_as(
        "select name, id from artifact
         where customer_id = $1 and name = any($3)
           and owner_id in (
               $2, (select execution_id from test_report where customer_id = $1 and id = $2)
           )",
    )
    .bind(customer)
    .bind(report)
    .bind(names)
    .fetch_all(db)
    .await?;
    Ok(found.into_iter().collect())
}

/// Lists the artifacts of an execution, oldest first, without links.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    slice: &Slice,
) -> Result<Vec<ArtifactEntry>, Fault> {
    let columns = ArtifactEntry::COLUMNS;
    let after = ArtifactId::from_field_if_any("cursor", slice.after.as_deref())?;
    let list = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from artifact a
         left join test_report r on r.customer_id = $1 and r.id = a.owner_id
         where a.customer_id = $1 and a.execution_id = $2 and ($3::uuid is null or a.id > $3)
           and ($4::text is null or a.name ilike $4) and exists (
               select from execution e
               where e.customer_id = $1 and e.id = $2 and e.expired_at is null
           )
         order by a.id
         limit $5"
    )));
    let list = list.bind(customer).bind(execution).bind(after);
    Ok(list.bind(slice.pattern.as_deref()).bind(slice.limit).fetch_all(db).await?)
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    id: ArtifactId,
) -> Result<StoredArtifact, Fault> {
    let artifact = sqlx::query_as(
        "select execution_id, content_type, size from artifact a
         where customer_id = $1 and id = $2 and exists (
             select from live_execution e
             where e.customer_id = $1 and e.id = a.execution_id and e.expired_at is null
         )",
    );
    let artifact = artifact.bind(customer).bind(id).fetch_optional(db).await?;
    artifact.ok_or(Fault::NotFound("artifact"))
}

/// Deletes the artifacts of an execution.
pub(super) async fn delete_all(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    let removed = sqlx::query("delete from artifact where customer_id = $1 and execution_id = $2");
    removed.bind(customer).bind(execution).execute(db).await?;
    Ok(())
}

/// Returns the time of the database, in seconds since 1970.
pub(super) async fn now(db: impl PgExecutor<'_>) -> Result<i64, Fault> {
    let now = sqlx::query_scalar("select extract(epoch from now())::bigint");
    Ok(now.fetch_one(db).await?)
}
