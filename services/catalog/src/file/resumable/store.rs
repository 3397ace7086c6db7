//! Uploads in several requests, in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    ContentId, CustomerId, Fault, FileId, ProjectId, UploadId,
    catalog::{Upload, UploadFileHead},
};
use assay_storage::{Place, Renew};
use futures::FutureExt;
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, PgPool, PgTransaction};

use super::Writer;
use crate::{file::stray, project::store as projects};

/// Time after which an upload is deleted if no more of it arrives, as an interval of PostgreSQL.
const LIFETIME: &str = "24 hours";

/// Time without a renewal after which a request that appends to an upload gives way, as an interval of PostgreSQL. It
/// is renewed about every 20 seconds, and the store may take 30 more.
pub(super) const PATIENCE: &str = "2 minutes";

/// Maximum number of uploads of a customer that have not become files.
const MOST_UPLOADS: i64 = 1000;

/// Number of parts from which nothing is appended to an upload. A request adds one at least, however small, and all are
/// opened when they are joined.
pub(super) const MOST_PARTS: i64 = 10_000;

/// An upload to begin.
pub(super) struct NewUpload {
    pub(super) head: UploadFileHead,
    pub(super) metadata: String,
    /// Size of the file, in bytes, if it is known.
    pub(super) size: Option<i64>,
    /// SHA-256 that the file must have.
    pub(super) sha256: Option<[u8; 32]>,
}

/// An upload that a request appends to.
#[derive(FromRow)]
pub(super) struct Claimed {
    pub(super) name: String,
    pub(super) content_type: String,
    /// SHA-256 that the file must have.
    pub(super) sha256: Option<Vec<u8>>,
    /// Size of the file, in bytes, if the client has announced it.
    pub(super) size: Option<i64>,
    /// Number of parts that are stored.
    pub(super) parts: i64,
}

/// Inserts an upload within the quota that the transaction has locked.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    writer: &Writer,
    upload: &NewUpload,
) -> Result<(), Fault> {
    let open = "select count(*) from upload where customer_id = $1 and file_id is null";
    let open: i64 = sqlx::query_scalar(open).bind(writer.customer).fetch_one(&mut **tx).await?;
    if open >= MOST_UPLOADS {
        let reason = format!(
            "the customer has {MOST_UPLOADS} uploads that are not complete, its limit: continue or delete them"
        );
        return Err(Fault::Exhausted { code: "too_many_uploads", reason });
    }
    let insert = sqlx::query(AssertSqlSafe(format!(
        "insert into upload
             (customer_id, id, project_id, name, content_type, metadata, sha256, size, claimed,
              expires_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, coalesce($8::bigint, 0), now() + interval '{LIFETIME}')"
    )));
    insert
        .bind(writer.customer)
        .bind(writer.upload)
        .bind(writer.project)
        .bind(&upload.head.name)
        .bind(&upload.head.content_type)
        .bind(&upload.metadata)
        .bind(upload.sha256.as_ref().map(<[u8; 32]>::as_slice))
        .bind(upload.size)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Returns an upload that has not expired.
pub(crate) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: UploadId,
) -> Result<Upload, Fault> {
    let (columns, live) = (Upload::COLUMNS, projects::is_live("$2"));
    let upload = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from upload
         where customer_id = $1 and project_id = $2 and id = $3 and expires_at > now() and {live}"
    )));
    let upload = upload.bind(customer).bind(project).bind(id).fetch_optional(db).await?;
    upload.ok_or(Fault::NotFound("upload"))
}

/// Makes a request the only one that appends to an upload, from this offset on. Returns none if the offset is
/// another one, if another request does so, or if the upload is complete or does not exist.
pub(super) async fn claim(
    db: impl PgExecutor<'_>,
    writer: &Writer,
    offset: i64,
) -> Result<Option<Claimed>, Fault> {
    let live = projects::is_live("$2");
    let claimed = sqlx::query_as(AssertSqlSafe(format!(
        "update upload
         set writer_id = $4, written_at = now(), claimed = coalesce(size, received)
         where customer_id = $1 and project_id = $2 and id = $3 and received = $5
           and file_id is null and expires_at > now() and {live}
           and (writer_id is null or written_at < now() - interval '{PATIENCE}')
         returning name, content_type, sha256, size,
                   (select count(*) from upload_part part
                    where part.customer_id = upload.customer_id and part.upload_id = upload.id)
                       as parts"
    )));
    let claimed = claimed.bind(writer.customer).bind(writer.project).bind(writer.upload);
    Ok(claimed.bind(writer.id).bind(offset).fetch_optional(db).await?)
}

/// Lets other requests append to an upload.
pub(super) async fn release(db: impl PgExecutor<'_>, writer: &Writer) -> Result<(), Fault> {
    sqlx::query(
        "update upload set writer_id = null, claimed = coalesce(size, received)
         where customer_id = $1 and id = $2 and writer_id = $3",
    )
    .bind(writer.customer)
    .bind(writer.upload)
    .bind(writer.id)
    .execute(db)
    .await?;
    Ok(())
}

/// Records the size of an upload, for which its customer has room. Fails if it has one already.
pub(super) async fn announce(
    tx: &mut PgTransaction<'_>,
    writer: &Writer,
    size: i64,
) -> Result<(), Fault> {
    let announced = sqlx::query(
        "update upload set size = $4, claimed = $4
         where customer_id = $1 and id = $2 and writer_id = $3 and size is null",
    );
    let announced = announced.bind(writer.customer).bind(writer.upload).bind(writer.id);
    still_writes(announced.bind(size).execute(&mut **tx).await?.rows_affected())
}

/// Records that room for more bytes of an upload without a size is claimed.
pub(super) async fn grow(
    tx: &mut PgTransaction<'_>,
    writer: &Writer,
    more: i64,
) -> Result<(), Fault> {
    let grown = sqlx::query(
        "update upload set claimed = claimed + $4, written_at = now()
         where customer_id = $1 and id = $2 and writer_id = $3",
    );
    let grown = grown.bind(writer.customer).bind(writer.upload).bind(writer.id);
    still_writes(grown.bind(more).execute(&mut **tx).await?.rows_affected())
}

/// Returns what records that a request appends to an upload, and that these bytes are being stored.
pub(super) fn renewal(db: &PgPool, writer: &Writer, places: Vec<Place>) -> Renew {
    let (db, writer) = (db.clone(), *writer);
    Box::new(move || {
        let (db, places) = (db.clone(), places.clone());
        async move {
            renew(&db, &writer).await?;
            for place in places {
                stray::touch(&db, place).await?;
            }
            Ok(())
        }
        .boxed()
    })
}

/// Records that a request goes on to append to an upload. Fails if it does not any more.
pub(super) async fn renew(db: impl PgExecutor<'_>, writer: &Writer) -> Result<(), Fault> {
    let renewed = sqlx::query(
        "update upload set written_at = now()
         where customer_id = $1 and id = $2 and writer_id = $3",
    );
    let renewed = renewed.bind(writer.customer).bind(writer.upload).bind(writer.id);
    still_writes(renewed.execute(db).await?.rows_affected())
}

/// Fails if a request does not append to an upload any more.
fn still_writes(rows: u64) -> Result<(), Fault> {
    if rows == 1 { Ok(()) } else { Err(in_use()) }
}

/// The fault of a request that is not the one that appends to the upload.
pub(super) fn in_use() -> Fault {
    let reason = "another request has appended to the upload, or deleted it: read the offset, and continue there";
    Fault::Conflict { code: "upload_in_use", reason: reason.to_owned() }
}

/// Counts the bytes of a part that was stored, which follow those before `position`.
pub(super) async fn record(
    tx: &mut PgTransaction<'_>,
    writer: &Writer,
    position: i64,
    (place, size): (Place, i64),
) -> Result<(), Fault> {
    projects::lock_shared(tx, writer.customer, writer.project).await?;
    let counted = sqlx::query(AssertSqlSafe(format!(
        "update upload
         set received = received + $5, claimed = coalesce(size, received + $5),
             written_at = now(), expires_at = now() + interval '{LIFETIME}'
         where customer_id = $1 and id = $2 and writer_id = $3 and received = $4"
    )));
    let counted = counted.bind(writer.customer).bind(writer.upload).bind(writer.id);
    let counted = counted.bind(position).bind(size).execute(&mut **tx).await?;
    still_writes(counted.rows_affected())?;
    stray::adopt(&mut **tx, place).await?;
    sqlx::query(
        "insert into upload_part (customer_id, upload_id, position, content_id)
         values ($1, $2, $3, $4)",
    )
    .bind(writer.customer)
    .bind(writer.upload)
    .bind(position)
    .bind(place.id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Returns where the counted parts of an upload are, in their order.
pub(super) async fn parts(db: impl PgExecutor<'_>, writer: &Writer) -> Result<Vec<Place>, Fault> {
    let parts: Vec<ContentId> = sqlx::query_scalar(
        "select content_id from upload_part where customer_id = $1 and upload_id = $2
         order by position",
    )
    .bind(writer.customer)
    .bind(writer.upload)
    .fetch_all(db)
    .await?;
    let place = |id: ContentId| super::files::place(writer.customer, writer.project, id);
    Ok(parts.into_iter().map(place).collect())
}

/// Records the file that an upload has become. Its parts become stray.
pub(super) async fn finish(
    tx: &mut PgTransaction<'_>,
    writer: &Writer,
    (file, size): (FileId, i64),
) -> Result<(), Fault> {
    let finished = sqlx::query(AssertSqlSafe(format!(
        "update upload
         set size = $5, received = $5, file_id = $4, writer_id = null,
             expires_at = now() + interval '{LIFETIME}'
         where customer_id = $1 and id = $2 and writer_id = $3"
    )));
    let finished = finished.bind(writer.customer).bind(writer.upload).bind(writer.id);
    let finished = finished.bind(file).bind(size).execute(&mut **tx).await?;
    still_writes(finished.rows_affected())?;
    sqlx::query(
        "with part as (
             delete from upload_part where customer_id = $1 and upload_id = $2
             returning content_id
         )
         insert into stray_content (customer_id, folder_id, content_id, size, is_removed)
         select $1, $3, content_id, 0, true from part",
    )
    .bind(writer.customer)
    .bind(writer.upload)
    .bind(writer.project)
    .execute(&mut **tx)
    .await?;
    Ok(())
}
