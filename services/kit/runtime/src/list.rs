//! Lists of any length: read in slices, each by a short query of its own, so that neither memory
//! nor a database connection is held while a slow client reads.

use std::{future::Future, pin::Pin};

use assay_proto::{Batch, Fault, Listed, Page};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use prost::Message;
use tonic::{Response, Status};
use uuid::Uuid;

/// What a client may ask for at most in one page.
const LONGEST_PAGE: i32 = 1000;

/// How many rows a whole list reads at first, for a quick first byte, and then.
const FIRST_SLICE: i64 = 100;
const NEXT_SLICES: i64 = 1000;

/// What one gRPC message carries at most, in bytes; far below what a peer takes.
const MESSAGE_SIZE: usize = 256 << 10;

/// A list as a gRPC method answers it.
pub type Batches<B> = Pin<Box<dyn Stream<Item = Result<B, Status>> + Send>>;

/// Which rows of a list to read.
#[derive(Clone, Debug)]
pub struct Slice {
    /// The cursor of the row after which to begin.
    pub after: Option<String>,
    /// How many rows to read at most.
    pub limit: i64,
    /// The pattern, for `ilike`, that names have to match.
    pub pattern: Option<String>,
}

impl Slice {
    /// Where a list that is ordered by ids goes on, newest first: all ids of the slice come before
    /// this one. No record has the largest id.
    pub fn before(&self) -> Result<Uuid, Fault> {
        let Some(cursor) = &self.after else { return Ok(Uuid::max()) };
        Uuid::try_parse(cursor)
            .map_err(|_| Fault::invalid("cursor", "must be one that a list answered"))
    }
}

/// Answers a list. `read` runs one query; the rows have to be ordered so that a row's cursor says
/// where to go on.
pub async fn answer<B, R>(
    page: Option<Page>,
    read: impl Fn(Slice) -> R + Send + 'static,
) -> Result<Response<Batches<B>>, Status>
where
    B: Batch + 'static,
    R: Future<Output = Result<Vec<B::Item>, Fault>> + Send + 'static,
{
    let page = page.unwrap_or_default();
    if page.q.as_ref().is_some_and(|text| text.contains('\0')) {
        return Err(Fault::invalid("q", "must not contain NUL characters").into());
    }
    let pattern = page.q.as_deref().filter(|text| !text.is_empty()).map(pattern);
    let Some(limit) = page.limit else {
        let rows = whole(page.cursor, pattern, read);
        let batches = rows.map_ok(|items| B::new(items, None)).map_err(Status::from);
        return Ok(Response::new(Box::pin(batches)));
    };
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Fault::invalid("limit", format!("must be 1 to {LONGEST_PAGE}")).into());
    }
    let slice = Slice { after: page.cursor, limit: i64::from(limit) + 1, pattern };
    let mut rows = read(slice).await?;
    let more = rows.len() > usize::try_from(limit).unwrap_or_default();
    if more {
        rows.pop();
    }
    let next = rows.last().filter(|_| more).map(|row| row.cursor().to_owned());
    let batches = split(rows).into_iter().map(move |items| Ok(B::new(items, next.clone())));
    Ok(Response::new(Box::pin(stream::iter(batches))))
}

/// All rows from `after` on, in parts that fit into a message each.
pub fn whole<T, R>(
    after: Option<String>,
    pattern: Option<String>,
    read: impl Fn(Slice) -> R + Send + 'static,
) -> impl Stream<Item = Result<Vec<T>, Fault>> + Send
where
    T: Listed + 'static,
    R: Future<Output = Result<Vec<T>, Fault>> + Send + 'static,
{
    let first = Slice { after, limit: FIRST_SLICE, pattern };
    let slices = stream::try_unfold((Some(first), read), |(slice, read)| async move {
        let Some(mut slice) = slice else { return Ok::<_, Fault>(None) };
        let rows = read(slice.clone()).await?;
        let is_last = i64::try_from(rows.len()).is_ok_and(|count| count < slice.limit);
        slice.after = rows.last().map(|row| row.cursor().to_owned());
        slice.limit = NEXT_SLICES;
        Ok(Some((split(rows), ((!is_last).then_some(slice), read))))
    });
    slices.map_ok(|parts| stream::iter(parts).map(Ok)).try_flatten()
}

/// Cuts rows into parts that fit into a message each.
pub fn split<T: Message>(rows: Vec<T>) -> Vec<Vec<T>> {
    let (mut parts, mut part, mut size) = (Vec::new(), Vec::new(), 0);
    for row in rows {
        let length = row.encoded_len();
        if size + length > MESSAGE_SIZE && !part.is_empty() {
            parts.push(std::mem::take(&mut part));
            size = 0;
        }
        size += length;
        part.push(row);
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// The pattern, for `like` and `ilike`, of texts that contain `text`.
pub fn pattern(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

#[cfg(test)]
mod tests {
    use assay_proto::notification::{Notification, NotificationBatch};

    use super::*;

    type Rows = std::future::Ready<Result<Vec<Notification>, Fault>>;

    /// A list of `count` rows, of `size` bytes each, whose cursors count down to 1.
    fn rows(count: i64, size: usize) -> impl Fn(Slice) -> Rows + Send + 'static {
        move |slice: Slice| {
            let before = slice.after.map_or(count + 1, |after| after.parse().unwrap());
            let numbers = (1..before).rev().take(usize::try_from(slice.limit).unwrap());
            let row = |number: i64| Notification {
                id: number.to_string(),
                source: "x".repeat(size),
                ..Notification::default()
            };
            std::future::ready(Ok(numbers.map(row).collect()))
        }
    }

    async fn answered(page: Page, count: i64, size: usize) -> Vec<NotificationBatch> {
        let answer = answer(Some(page), rows(count, size)).await.unwrap();
        answer.into_inner().try_collect().await.unwrap()
    }

    fn ids(batches: Vec<NotificationBatch>) -> Vec<i64> {
        let items = batches.into_iter().flat_map(|batch| batch.items);
        items.map(|item| item.id.parse().unwrap()).collect()
    }

    #[tokio::test]
    async fn a_whole_list_misses_and_doubles_nothing() {
        for count in [0, 1, FIRST_SLICE - 1, FIRST_SLICE, FIRST_SLICE + NEXT_SLICES, 3456] {
            let all: Vec<i64> = (1..=count).rev().collect();
            assert_eq!(ids(answered(Page::default(), count, 10).await), all);
        }
    }

    #[tokio::test]
    async fn no_message_is_larger_than_a_peer_takes() {
        let batches = answered(Page::default(), 300, 64 << 10).await;
        assert!(batches.len() > 50);
        assert!(batches.iter().all(|batch| batch.encoded_len() < 2 * MESSAGE_SIZE));
    }

    #[tokio::test]
    async fn pages_follow_each_other_to_the_end() {
        let (mut cursor, mut seen) = (None, Vec::new());
        loop {
            let page = Page { limit: Some(7), cursor: cursor.take(), q: None };
            let batches = answered(page, 21, 10).await;
            cursor = batches[0].next_cursor.clone();
            seen.extend(ids(batches));
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, (1..=21).rev().collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_limit_out_of_bounds_is_refused() {
        for limit in [-1, 0, LONGEST_PAGE + 1] {
            let page = Page { limit: Some(limit), ..Page::default() };
            assert!(answer::<NotificationBatch, _>(Some(page), rows(3, 1)).await.is_err());
        }
    }

    #[test]
    fn what_a_pattern_means_is_escaped() {
        assert_eq!(pattern(r"50%_of\it"), r"%50\%\_of\\it%");
    }
}
