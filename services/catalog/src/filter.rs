//! The filters of lists: active records, archived ones, favorites of the user, and the records that
//! the user opened last. In the SQL, `$1` is the customer and `$2` the user.

use assay_proto::{
    Fault, Listed, Page,
    catalog::{ListFilter, RecordKind},
    name_of,
};
use assay_rpc::list::{Rows, Slice};
use futures::{Stream, TryStreamExt};
use uuid::Uuid;

/// Maximum number of records in a list of recent ones.
const RECENT: i32 = 20;

/// Returns the filter of active or of archived records.
pub(crate) fn active_or_archived(archived: bool) -> ListFilter {
    if archived { ListFilter::Archive } else { ListFilter::Unspecified }
}

/// Returns the condition that the rows of a list fulfil, in the words of the partial indexes.
/// Favorites and recent records are found by their ids, which is fast even before PostgreSQL has
/// statistics.
pub(crate) fn condition(filter: ListFilter, kind: RecordKind) -> String {
    let marked = |record: &str, table: &str| {
        let kind = name_of(kind);
        format!(
            "not archived and deleted_at is null and id = any(array(
                 select {record} from {table}
                 where customer_id = $1 and user_id = $2 and kind = '{kind}'
             ))"
        )
    };
    match filter {
        // Every statement uses the user, so that all have the same parameters.
        ListFilter::Unspecified => "live and $2::uuid is not null".to_owned(),
        ListFilter::Archive => {
            "archived and deleted_at is null and $2::uuid is not null".to_owned()
        }
        ListFilter::NeverRun => "live and last_result is null and $2::uuid is not null".to_owned(),
        ListFilter::Favorites => marked("record_id", "favorite"),
        ListFilter::Recent => marked("unnest(record_ids)", "opening"),
    }
}

/// Returns the expression that the rows of a list are ordered by.
pub(crate) fn order(filter: ListFilter, kind: RecordKind) -> String {
    if filter != ListFilter::Recent {
        return "id desc".to_owned();
    }
    let kind = name_of(kind);
    format!(
        "(
            select array_position(record_ids, id) from opening
            where customer_id = $1 and user_id = $2 and kind = '{kind}' and id = any(record_ids)
        )"
    )
}

/// Returns the page to read. A list of recent records is one page: an opening that is written between
/// two slices of it would change which records come next.
pub(crate) fn page(filter: ListFilter, page: Option<Page>) -> Option<Page> {
    if filter != ListFilter::Recent {
        return page;
    }
    let page = page.unwrap_or_default();
    Some(Page { limit: page.limit.or(Some(RECENT)), ..page })
}

/// Returns the id before which the rows of a slice come.
pub(crate) fn before(filter: ListFilter, slice: &Slice) -> Result<Uuid, Fault> {
    if filter == ListFilter::Recent { Ok(Uuid::max()) } else { slice.before() }
}

/// Returns the maximum number of rows to read for a slice.
pub(crate) fn limit(filter: ListFilter, slice: &Slice) -> i64 {
    if filter == ListFilter::Recent { RECENT.into() } else { slice.limit }
}

/// Reads a slice of the rows. Recent records are few and all read for each slice, since they are not
/// in the order of their ids.
pub(crate) async fn read<T: Listed>(
    filter: ListFilter,
    rows: impl Stream<Item = Result<T, sqlx::Error>>,
    slice: &Slice,
) -> Result<Rows<T>, Fault> {
    if filter != ListFilter::Recent {
        return slice.read(rows).await;
    }
    let mut rows: Vec<T> = rows.try_collect().await?;
    if let Some(cursor) = &slice.after {
        let index = rows.iter().position(|row| row.cursor() == cursor);
        let index = index.ok_or_else(|| Fault::invalid("cursor", "is not in the list"))?;
        rows.drain(..=index);
    }
    rows.truncate(usize::try_from(slice.limit).unwrap_or_default());
    Ok(rows.into())
}
