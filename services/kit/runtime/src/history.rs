//! Long histories, searched for what is rare: in short looks, so that none holds a connection to the
//! database for long.

use assay_proto::Fault;
use uuid::Uuid;

use crate::list::{Rows, Slice};

/// How many rows a look examines.
pub const EXAMINED: i64 = 10_000;

/// Reads a slice of a list that is ordered by ids, newest first. `bound` finds the oldest id that a
/// look examines, which begins before an id; none where less than [`EXAMINED`] rows are left. `find`
/// finds at most so many rows from the first id on and before the second, newest first.
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
        let look = find(from.unwrap_or_default(), before, missing).await?;
        let is_whole = i64::try_from(look.items.len()).is_ok_and(|count| count == missing);
        let is_over = is_whole || look.is_cut();
        let rows = match found.take() {
            Some(found) => found.and(look),
            None => look,
        };
        match from {
            Some(from) if !is_over => before = from,
            _ => return Ok(rows),
        }
        found = Some(rows);
    }
}
