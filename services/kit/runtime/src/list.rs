//! Lists of any length: read in slices, each by a short query of its own, so that neither memory
//! nor a database connection is held while a slow client reads. A slice is bounded in rows and in
//! bytes: the rows of a slice are read one by one, and reading stops at a byte budget.

use std::{future::Future, pin::Pin};

use assay_proto::{Batch, Fault, Listed, Page};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use prost::Message;
use tonic::{Response, Status};
use uuid::Uuid;

/// What a client may ask for at most in one page.
const LONGEST_PAGE: i32 = 1000;

/// Bytes after which a page ends even if it has fewer rows than were asked for.
const PAGE_SIZE: usize = 4 << 20;

/// How many rows a list reads at first, when it is not known yet what they weigh, and then at most.
const FIRST_SLICE: i64 = 16;
const NEXT_SLICES: i64 = 1000;

/// Bytes after which a slice ends.
const SLICE_SIZE: usize = 1 << 20;

/// What one gRPC message carries at most, in bytes; far below what a peer takes.
const MESSAGE_SIZE: usize = 64 << 10;

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
    /// The first slice of a whole list.
    pub fn first() -> Self {
        Self { after: None, limit: FIRST_SLICE, pattern: None }
    }

    /// Where a list that is ordered by ids goes on, newest first: all ids of the slice come before
    /// this one. No record has the largest id.
    pub fn before(&self) -> Result<Uuid, Fault> {
        let Some(cursor) = &self.after else { return Ok(Uuid::max()) };
        Uuid::try_parse(cursor)
            .map_err(|_| Fault::invalid("cursor", "must be one that a list answered"))
    }

    /// Reads the rows of the slice as they arrive from the database, and keeps them until they weigh
    /// enough. The rest of the query is discarded row by row, before this returns: the connection
    /// is free again while its share is still held.
    pub async fn read<T: Message, E: Into<Fault>>(
        &self,
        rows: impl Stream<Item = Result<T, E>>,
    ) -> Result<Rows<T>, Fault> {
        let mut rows = std::pin::pin!(rows);
        let (mut items, mut size) = (Vec::new(), 0);
        while let Some(row) = rows.next().await {
            let row = row.map_err(Into::into)?;
            size += row.encoded_len();
            items.push(row);
            if size >= SLICE_SIZE {
                while let Some(row) = rows.next().await {
                    row.map_err(Into::into)?;
                }
                return Ok(Rows { items, size, is_cut: true });
            }
        }
        Ok(Rows { items, size, is_cut: false })
    }
}

/// The rows of a slice.
#[derive(Debug)]
pub struct Rows<T> {
    pub items: Vec<T>,
    /// Their size, in bytes.
    size: usize,
    /// Whether reading stopped before the slice had as many rows as it may have.
    is_cut: bool,
}

impl<T> Rows<T> {
    /// Whether reading stopped at the byte budget.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Keeps the first rows only.
    pub fn truncate(&mut self, count: usize) {
        self.items.truncate(count);
    }

    /// These rows and those that follow them.
    #[must_use]
    pub fn and(mut self, following: Self) -> Self {
        self.items.extend(following.items);
        Self { items: self.items, size: self.size + following.size, is_cut: following.is_cut }
    }

    /// The same slice of something else that is made of each row.
    pub fn map<U>(self, of: impl FnMut(T) -> U) -> Rows<U> {
        let Self { items, size, is_cut } = self;
        Rows { items: items.into_iter().map(of).collect(), size, is_cut }
    }
}

/// Rows that were read whole: for those that are small or few.
impl<T: Message> From<Vec<T>> for Rows<T> {
    fn from(items: Vec<T>) -> Self {
        let size = items.iter().map(Message::encoded_len).sum();
        Self { items, size, is_cut: false }
    }
}

/// A list that is read slice after slice.
struct Slices<F> {
    next: Option<Slice>,
    read: F,
}

impl<F> Slices<F> {
    /// Reads the next slice, of at most so many rows, and says what it weighs. An empty one is the
    /// end.
    async fn next<T, V, R>(&mut self, most: i64) -> Result<(Vec<T>, usize), Fault>
    where
        F: Fn(Slice) -> R,
        T: Listed,
        V: Into<Rows<T>>,
        R: Future<Output = Result<V, Fault>>,
    {
        let Some(mut slice) = self.next.take() else { return Ok((Vec::new(), 0)) };
        slice.limit = slice.limit.min(most);
        let rows = (self.read)(slice.clone()).await?.into();
        self.note(slice, rows)
    }

    /// Notes where the list goes on after the rows of a slice; returns them with what they weigh.
    fn note<T: Listed>(
        &mut self,
        mut slice: Slice,
        Rows { items, size, is_cut }: Rows<T>,
    ) -> Result<(Vec<T>, usize), Fault> {
        let count = i64::try_from(items.len()).map_err(Fault::internal)?;
        if (is_cut || count >= slice.limit)
            && let Some(last) = items.last()
        {
            slice.after = Some(last.cursor().to_owned());
            slice.limit = fitting(count, size);
            self.next = Some(slice);
        }
        Ok((items, size))
    }
}

/// How many rows to ask for next, where `count` rows had `size` bytes.
fn fitting(count: i64, size: usize) -> i64 {
    let budget = i64::try_from(SLICE_SIZE).unwrap_or(i64::MAX);
    let size = i64::try_from(size).unwrap_or(i64::MAX).max(1);
    budget.saturating_mul(count).div_euclid(size).clamp(1, NEXT_SLICES)
}

/// Answers a list. `read` runs one query; the rows have to be ordered so that a row's cursor says
/// where to go on.
pub async fn answer<B, V, R>(
    page: Option<Page>,
    read: impl Fn(Slice) -> R + Send + 'static,
) -> Result<Response<Batches<B>>, Status>
where
    B: Batch + 'static,
    V: Into<Rows<B::Item>> + Send + 'static,
    R: Future<Output = Result<V, Fault>> + Send + 'static,
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
    let limit = i64::from(limit);
    let first = Slice { after: page.cursor, limit: limit.min(FIRST_SLICE) + 1, pattern };
    let (rows, next) = one_page(Slices { next: Some(first), read }, limit).await?;
    let batches = split(rows).into_iter().map(move |items| Ok(B::new(items, next.clone())));
    Ok(Response::new(Box::pin(stream::iter(batches))))
}

/// Reads a page, and the cursor of the next one if there is more: at most `limit` rows, or as many
/// as do not weigh too much.
async fn one_page<T, V, R>(
    mut slices: Slices<impl Fn(Slice) -> R>,
    limit: i64,
) -> Result<(Vec<T>, Option<String>), Fault>
where
    T: Listed,
    V: Into<Rows<T>>,
    R: Future<Output = Result<V, Fault>>,
{
    let (mut rows, mut size) = (Vec::new(), 0);
    // One row more than is answered shows that there is a next page.
    let mut missing = limit + 1;
    while missing > 0 && size < PAGE_SIZE {
        let (mut slice, slice_size) = slices.next(missing).await?;
        if slice.is_empty() {
            return Ok((rows, None));
        }
        missing -= i64::try_from(slice.len()).map_err(Fault::internal)?;
        size += slice_size;
        rows.append(&mut slice);
    }
    if missing > 0 && slices.next.is_none() {
        return Ok((rows, None));
    }
    if rows.len() > 1 {
        rows.pop();
    }
    let next = rows.last().map(|row| row.cursor().to_owned());
    Ok((rows, next))
}

/// All rows from `after` on, in parts that fit into a message each.
pub fn whole<T, V, R>(
    after: Option<String>,
    pattern: Option<String>,
    read: impl Fn(Slice) -> R + Send + 'static,
) -> impl Stream<Item = Result<Vec<T>, Fault>> + Send
where
    T: Listed + 'static,
    V: Into<Rows<T>> + Send + 'static,
    R: Future<Output = Result<V, Fault>> + Send + 'static,
{
    let first = Slice { after, pattern, ..Slice::first() };
    rest(Slices { next: Some(first), read })
}

/// As [`whole`], of a list whose first slice, [`Slice::first`], was read already.
pub fn begun<T, V, R>(
    first: Rows<T>,
    read: impl Fn(Slice) -> R + Send + 'static,
) -> Result<impl Stream<Item = Result<Vec<T>, Fault>> + Send, Fault>
where
    T: Listed + 'static,
    V: Into<Rows<T>> + Send + 'static,
    R: Future<Output = Result<V, Fault>> + Send + 'static,
{
    let mut slices = Slices { next: None, read };
    let (rows, _) = slices.note(Slice::first(), first)?;
    Ok(stream::iter(split(rows).into_iter().map(Ok)).chain(rest(slices)))
}

fn rest<T, V, R>(
    slices: Slices<impl Fn(Slice) -> R + Send + 'static>,
) -> impl Stream<Item = Result<Vec<T>, Fault>> + Send
where
    T: Listed + 'static,
    V: Into<Rows<T>> + Send + 'static,
    R: Future<Output = Result<V, Fault>> + Send + 'static,
{
    let slices = stream::try_unfold(slices, |mut slices| async move {
        let (rows, _) = slices.next(NEXT_SLICES).await?;
        Ok::<_, Fault>((!rows.is_empty()).then(|| (split(rows), slices)))
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
mod tests;
