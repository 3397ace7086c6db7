//! Lists of records, newest first: in the order of their ids, backwards.

use assay_proto::Fault;
use assay_runtime::list::Slice;
use uuid::Uuid;

/// The id that all of a slice come before; no record has the largest one.
pub(crate) fn bound(slice: &Slice) -> Result<Uuid, Fault> {
    let Some(cursor) = &slice.after else { return Ok(Uuid::max()) };
    Uuid::try_parse(cursor)
        .map_err(|_| Fault::invalid("cursor", "must be one that a list answered"))
}
