//! Files in PostgreSQL. Every statement is bound to one customer.

use assay_auth::Caller;
use assay_proto::{
    ContentId, CustomerId, Fault, FileId, ProjectId, Rendered,
    catalog::{StoredFile, UploadFileHead},
};
use assay_rpc::list::{Rows, Slice};
use assay_storage::{Place, Stored};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use crate::project::store as projects;

/// A file, and where its contents are.
#[derive(FromRow)]
pub(super) struct Placed {
    #[sqlx(flatten)]
    pub(super) file: StoredFile,
    content_id: ContentId,
}

impl Placed {
    /// Returns where the contents of the file are.
    pub(super) fn place(&self, customer: CustomerId) -> Result<Place, Fault> {
        let project = ProjectId::from_record(&self.file.project_id)?;
        Ok(place(customer, project, self.content_id))
    }
}

/// Returns where contents of a project are.
pub(super) fn place(customer: CustomerId, project: ProjectId, id: ContentId) -> Place {
    Place { customer, folder: project.0, id: id.0 }
}

const TABLES: &str = "file join content
    on content.customer_id = file.customer_id and content.id = file.content_id";

/// Lists a slice of the files of a project, newest first. Fails if the project does not exist.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    sha256: Option<&[u8; 32]>,
    slice: &Slice,
) -> Result<Rows<Rendered<StoredFile>>, Fault> {
    let (columns, live) = (StoredFile::COLUMNS, projects::is_live("$2"));
    let files = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from {TABLES}
         where file.customer_id = $1 and file.project_id = $2 and file.id < $3 and {live}
           and ($4::text is null or file.name ilike $4)
           and ($5::bytea is null or content.sha256 = $5)
         order by file.id desc
         limit $6"
    )));
    let files = files.bind(customer).bind(project).bind(slice.before()?).bind(&slice.pattern);
    let files = files.bind(sha256.map(<[u8; 32]>::as_slice)).bind(slice.limit).fetch(db);
    let rows = slice.read(files).await?;
    if rows.items.is_empty() {
        projects::find(db, customer, project).await?;
    }
    Ok(rows)
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: FileId,
) -> Result<Placed, Fault> {
    let (columns, live) = (StoredFile::COLUMNS, projects::is_live("$2"));
    let file = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, content_id from {TABLES}
         where file.customer_id = $1 and file.project_id = $2 and file.id = $3 and {live}"
    )));
    let file = file.bind(customer).bind(project).bind(id).fetch_optional(db).await?;
    file.ok_or(Fault::NotFound("file"))
}

/// Returns a file to which one of these records refers.
pub(super) async fn referred(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    records: &[Uuid],
    id: FileId,
) -> Result<Placed, Fault> {
    let (columns, live) = (StoredFile::COLUMNS, projects::is_live("file.project_id"));
    let file = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, content_id from {TABLES}
         where file.customer_id = $1 and file.id = $2 and {live} and exists (
             select from file_reference
             where file_reference.customer_id = $1 and record_id = any($3) and file_id = file.id
         )"
    )));
    let file = file.bind(customer).bind(id).bind(records).fetch_optional(db).await?;
    file.ok_or(Fault::NotFound("file"))
}

/// Inserts contents unless the project has them already. Returns the id under which it has them, or none if
/// another transaction has removed them just now.
pub(super) async fn insert_content(
    tx: &mut PgTransaction<'_>,
    place: Place,
    Stored { size, sha256 }: &Stored,
) -> Result<Option<ContentId>, Fault> {
    let inserted = sqlx::query_scalar(
        "insert into content (customer_id, id, project_id, sha256, size)
         values ($1, $2, $3, $4, $5)
         on conflict on constraint content_sha256_key do nothing
         returning id",
    );
    let inserted = inserted.bind(place.customer).bind(place.id).bind(place.folder);
    let inserted = inserted.bind(&sha256[..]).bind(size).fetch_optional(&mut **tx).await?;
    if inserted.is_some() {
        return Ok(inserted);
    }
    let found = sqlx::query_scalar(
        "select id from content
         where customer_id = $1 and project_id = $2 and sha256 = $3
         for key share",
    );
    let found = found.bind(place.customer).bind(place.folder).bind(&sha256[..]);
    Ok(found.fetch_optional(&mut **tx).await?)
}

/// Takes turns with other transactions that add to the files of a customer, until this one ends.
pub(super) async fn lock_quota(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
) -> Result<(), Fault> {
    let lock = "select pg_advisory_xact_lock(hashtextextended('assay files ' || $1::text, 0))";
    sqlx::query(lock).bind(customer).execute(&mut **tx).await?;
    Ok(())
}

/// Inserts a file with contents that the transaction has inserted or locked.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    project: ProjectId,
    content: ContentId,
    head: &UploadFileHead,
) -> Result<StoredFile, Fault> {
    let id = FileId::new();
    sqlx::query(
        "insert into file
             (customer_id, id, project_id, content_id, name, content_type, created_by)
         values ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(caller.customer)
    .bind(id)
    .bind(project)
    .bind(content)
    .bind(&head.name)
    .bind(&head.content_type)
    .bind(&*caller.name)
    .execute(&mut **tx)
    .await?;
    Ok(get(&mut **tx, caller.customer, project, id).await?.file)
}

/// Deletes a file of a project that the transaction has locked exclusively. Contents that no other file has
/// become stray. Returns where they are.
pub(super) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: FileId,
) -> Result<Option<Place>, Fault> {
    let content = sqlx::query_scalar(
        "delete from file where customer_id = $1 and project_id = $2 and id = $3
         returning content_id",
    );
    let content = content.bind(customer).bind(project).bind(id).fetch_optional(&mut **tx).await?;
    let content: ContentId = content.ok_or(Fault::NotFound("file"))?;
    let removed = remove_contents(tx, customer, &[content]).await?;
    Ok((removed > 0).then(|| place(customer, project, content)))
}

/// Removes those of some contents that no file has, and records that their bytes are to be removed. Returns
/// their number.
async fn remove_contents(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    contents: &[ContentId],
) -> Result<u64, Fault> {
    let removed = sqlx::query(
        "with removed as (
             delete from content
             where customer_id = $1 and id = any($2) and not exists (
                 select from file
                 where file.customer_id = $1 and file.content_id = content.id
             )
             returning id, project_id
         )
         insert into stray_content (customer_id, folder_id, content_id, size, is_removed)
         select $1, project_id, id, 0, true from removed",
    );
    Ok(removed.bind(customer).bind(contents).execute(&mut **tx).await?.rows_affected())
}

/// Removes up to `limit` files of a deleted project. Returns their number.
pub(crate) async fn purge(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    limit: i64,
) -> Result<i64, Fault> {
    let contents: Vec<ContentId> = sqlx::query_scalar(
        "with purged as (
             select id from file where customer_id = $1 and project_id = $2 order by id limit $3
         ), released as (
             delete from file_reference
             where customer_id = $1 and file_id in (select id from purged)
         )
         delete from file where customer_id = $1 and id in (select id from purged)
         returning content_id",
    )
    .bind(customer)
    .bind(project)
    .bind(limit)
    .fetch_all(&mut **tx)
    .await?;
    remove_contents(tx, customer, &contents).await?;
    i64::try_from(contents.len()).map_err(Fault::internal)
}
