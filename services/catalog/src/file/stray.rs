//! Bytes that are being stored or removed, in PostgreSQL. The sweep reads those of all customers.

use assay_proto::{ContentId, CustomerId, Fault};
use assay_storage::{Place, Renew};
use futures::FutureExt;
use sqlx::{PgExecutor, PgPool};
use uuid::Uuid;

/// Inserts bytes before they are stored.
pub(super) async fn insert(db: impl PgExecutor<'_>, place: Place, size: i64) -> Result<(), Fault> {
    sqlx::query(
        "insert into stray_content (customer_id, folder_id, content_id, size)
         values ($1, $2, $3, $4)",
    )
    .bind(place.customer)
    .bind(place.folder)
    .bind(place.id)
    .bind(size)
    .execute(db)
    .await?;
    Ok(())
}

/// Records that an upload is in progress, or that its bytes are all there. Fails if they are being removed.
pub(super) async fn touch(db: impl PgExecutor<'_>, place: Place) -> Result<(), Fault> {
    let touched = sqlx::query(
        "update stray_content set touched_at = now()
         where customer_id = $1 and content_id = $2 and not is_removed",
    );
    taken(touched.bind(place.customer).bind(place.id).execute(db).await?.rows_affected())
}

/// Records that room for more bytes is claimed. Fails if they are being removed.
pub(super) async fn grow(db: impl PgExecutor<'_>, place: Place, more: i64) -> Result<(), Fault> {
    let grown = sqlx::query(
        "update stray_content set size = size + $3, touched_at = now()
         where customer_id = $1 and content_id = $2 and not is_removed",
    );
    let grown = grown.bind(place.customer).bind(place.id).bind(more);
    taken(grown.execute(db).await?.rows_affected())
}

/// Returns what [touches](touch) bytes while they arrive.
pub(super) fn renewal(db: &PgPool, place: Place) -> Renew {
    let db = db.clone();
    Box::new(move || {
        let db = db.clone();
        async move { touch(&db, place).await }.boxed()
    })
}

/// Deletes the row of bytes that become those of a file. Fails if they are being removed.
pub(super) async fn adopt(db: impl PgExecutor<'_>, place: Place) -> Result<(), Fault> {
    let adopted = sqlx::query(
        "delete from stray_content where customer_id = $1 and content_id = $2 and not is_removed",
    );
    taken(adopted.bind(place.customer).bind(place.id).execute(db).await?.rows_affected())
}

fn taken(rows: u64) -> Result<(), Fault> {
    if rows == 1 { Ok(()) } else { Err(Fault::Unavailable("the upload was given up, and")) }
}

/// Marks bytes as being removed. Returns whether they are not those of a file or an upload.
pub(super) async fn condemn(db: &PgPool, place: Place) -> Result<bool, Fault> {
    let condemned = sqlx::query(
        "update stray_content set is_removed = true where customer_id = $1 and content_id = $2",
    );
    let condemned = condemned.bind(place.customer).bind(place.id).execute(db).await?;
    if condemned.rows_affected() > 0 {
        return Ok(true);
    }
    // The sweep has given the bytes up while they were being stored. This is a statement of its own, which sees what a
    // transaction has done that the first one has waited for.
    let given_up = sqlx::query(
        "insert into stray_content (customer_id, folder_id, content_id, size, is_removed)
         select $1, $2, $3, 0, true
         where not exists (select from content where customer_id = $1 and id = $3)
           and not exists (
               select from upload_part where customer_id = $1 and content_id = $3
           )
         on conflict on constraint stray_content_pkey do nothing",
    );
    let given_up = given_up.bind(place.customer).bind(place.folder).bind(place.id);
    Ok(given_up.execute(db).await?.rows_affected() > 0)
}

/// Deletes the row of bytes that were removed.
pub(super) async fn delete(db: impl PgExecutor<'_>, place: Place) -> Result<(), Fault> {
    sqlx::query("delete from stray_content where customer_id = $1 and content_id = $2")
        .bind(place.customer)
        .bind(place.id)
        .execute(db)
        .await?;
    Ok(())
}

/// Returns the sum of the sizes of a customer that files have, and that uploads have announced, in bytes. The
/// parts of an upload in several requests are within what it has claimed.
pub(super) async fn sizes(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
) -> Result<(i64, i64), Fault> {
    let sizes = sqlx::query_as(
        "select (select coalesce(sum(size), 0)::bigint from content where customer_id = $1),
                (select coalesce(sum(size), 0)::bigint from stray_content
                 where customer_id = $1 and not is_removed)
                + (select coalesce(sum(claimed), 0)::bigint from upload
                   where customer_id = $1 and file_id is null)",
    );
    Ok(sizes.bind(customer).fetch_one(db).await?)
}

/// Marks up to 100 abandoned contents after one of them as being removed, and returns where they are. An
/// upload in progress touches its row about every 20 seconds.
pub(super) async fn abandon(
    db: impl PgExecutor<'_>,
    after: Option<Uuid>,
) -> Result<Vec<Place>, Fault> {
    let rows: Vec<(CustomerId, Uuid, ContentId)> = sqlx::query_as(
        "with abandoned as (
             select customer_id, content_id from stray_content
             where (touched_at < now() - interval '15 minutes' or is_removed)
               and content_id > coalesce($1, '00000000-0000-0000-0000-000000000000')
             order by content_id
             limit 100
             for update skip locked
         ), marked as (
             update stray_content stray set is_removed = true
             from abandoned
             where stray.customer_id = abandoned.customer_id
               and stray.content_id = abandoned.content_id
             returning stray.customer_id, stray.folder_id, stray.content_id
         )
         select customer_id, folder_id, content_id from marked order by content_id",
    )
    .bind(after)
    .fetch_all(db)
    .await?;
    let place = |(customer, folder, id): (_, _, ContentId)| Place { customer, folder, id: id.0 };
    Ok(rows.into_iter().map(place).collect())
}
