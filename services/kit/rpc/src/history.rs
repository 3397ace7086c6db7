//! Search for rare rows in long histories. Each query scans a bounded number of rows, so that none
//! holds a database connection for long.

use assay_proto::Fault;
use uuid::Uuid;

use crate::list::{Rows, Slice};

/// Maximum number of rows that a query scans.
pub const SCANNED: i64 = 10_000;

/// Reads a slice of a list that is ordered by ids, newest first. `bound` returns the oldest of the
/// [`SCANNED`] ids before an id, or none if fewer are left. `find` returns at most so many rows,
/// newest first, with ids from the first one on and before the second one.
pub async fn search<T, B, F>(
    slice: &Slice,
    bound: impl Fn(Uuid) -> B,
    find: impl Fn(Uuid, Uuid, i64) -> F,
) -> Result<Rows<T>, Fault>
where
    B: Future<Output = Result<Option<Uuid>, Fault>>,
    F: Future<Output = Result<Rows<T>, Fault>>,
{
    let mut found: Option<Rows<T>> = None;
    let mut before = slice.before()?;
    loop {
        let from = bound(before).await?;
        let count = found.as_ref().map_or(0, |found| found.items.len());
        let missing = slice.limit - i64::try_from(count).map_err(Fault::internal)?;
        let rows = find(from.unwrap_or_default(), before, missing).await?;
        let is_complete = i64::try_from(rows.items.len()).is_ok_and(|count| count == missing);
        let is_over = is_complete || rows.is_cut();
        let rows = match found.take() {
            Some(found) => found.and(rows),
            None => rows,
        };
        match from {
            Some(from) if !is_over => before = from,
            _ => return Ok(rows),
        }
        found = Some(rows);
    }
}
