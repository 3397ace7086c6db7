//! Pages of lists, which have links to those before and after them.

use assay_proto::{Batch, Listed, Page};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tonic::{Response, Streaming};

use super::call::Call;
use crate::{problem::Problem, rendering};

/// Maximum number of records in a page, and the default.
const LARGEST: i64 = 250;

/// The page that a call asks for.
pub(super) struct Paging {
    pub(super) offset: i64,
    pub(super) limit: i64,
    cursor: Option<String>,
}

impl Paging {
    pub(super) fn of(call: &Call) -> Result<Self, Problem> {
        let number = |name: &'static str, default: i64| match call.parameter(name) {
            None | Some("") => Ok(default),
            Some(text) => {
                let number = text.parse().ok().filter(|number| *number >= 0);
                number.ok_or_else(|| Problem::invalid(name, "must be a whole number, 0 or more"))
            }
        };
        let limit = match number("limit", LARGEST)? {
            0 => LARGEST,
            limit => limit.min(LARGEST),
        };
        let cursor = call.parameter("cursor").map(str::to_owned);
        Ok(Self { offset: number("offset", 0)?, limit, cursor })
    }

    /// Returns the rest of a list from the cursor on, or else the whole list. A service sends it in
    /// parts, and only as long as they are read.
    pub(super) fn rest(&self) -> Page {
        Page { limit: None, cursor: self.cursor.clone(), q: None }
    }

    /// Reads the records of the page from the list of [`Paging::rest`], and the cursor of the next
    /// page. The records of earlier pages are not kept.
    pub(super) async fn read<B: Batch + 'static>(
        &self,
        list: Response<Streaming<B>>,
    ) -> Result<(Vec<B::Item>, Option<String>), Problem> {
        let skipped = if self.cursor.is_some() { 0 } else { self.offset };
        let (mut skipped, limit) = (size(skipped), size(self.limit));
        let (mut batches, mut records) = (rendering::messages(list).boxed(), Vec::new());
        while let Some((batch, _share)) = batches.try_next().await? {
            let mut found = batch.parse()?;
            let gone = skipped.min(found.len());
            skipped -= gone;
            records.extend(found.drain(gone..));
            if records.len() > limit {
                records.truncate(limit);
                let next = records.last().map(|record: &B::Item| record.cursor().to_owned());
                return Ok((records, next));
            }
        }
        Ok((records, None))
    }
}

fn size(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Returns the page with these entities. Its link to the next one has the cursor; a client may also
/// increase the offset.
pub(super) fn of(call: &Call, entities: &str, page: &[Value], next: Option<Next>) -> Value {
    let Paging { offset, limit, .. } =
        Paging::of(call).unwrap_or(Paging { offset: 0, limit: LARGEST, cursor: None });
    let link = |offset: i64, cursor: Option<String>| {
        let mut parameters = vec![("limit", limit.to_string()), ("offset", offset.to_string())];
        parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
        call.link(&parameters)
    };
    let next = next.map(|Next(cursor)| link(offset.saturating_add(limit), cursor));
    let prev = (offset > 0).then(|| link((offset - limit).max(0), None));
    let size = page.len();
    let links = json!({ "next": next, "prev": prev });
    json!({ "offset": offset, "limit": limit, "size": size, "_links": links, entities: page })
}

/// A next page, and its cursor if the list has cursors.
pub(super) struct Next(pub(super) Option<String>);
