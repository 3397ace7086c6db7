//! Lists of any length. A list is read in slices, each by a short query, so that a slow client
//! holds neither memory nor a database connection. Slices are bounded in rows and in bytes: rows
//! are read one by one, and reading stops at a byte budget.

use std::{future::Future, pin::Pin};

use assay_proto::{Batch, Fault, Listed, Page, RowOf};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use prost::Message;
use tonic::{Response, Status};
use uuid::Uuid;

use crate::parts;

/// Maximum number of rows in a page.
const LONGEST_PAGE: i32 = 1000;

/// Number of bytes after which a page ends even if it has fewer rows than requested.
const PAGE_SIZE: usize = 4 << 20;

/// Number of rows in the first slice of a list, when their size is not known.
const FIRST_SLICE: i64 = 16;

/// Number of rows in a page of the usual length, and in the first slice of a longer one. The rows of
/// pages are small.
pub const USUAL_PAGE: i32 = 100;

/// Maximum number of rows in the following slices.
const NEXT_SLICES: i64 = 1000;

/// Number of bytes after which a slice ends.
const SLICE_SIZE: usize = 1 << 20;

/// Maximum number of bytes of rows in a gRPC message, far below the limit of receivers.
const MESSAGE_SIZE: usize = 64 << 10;

/// The response stream of a gRPC method that returns a list.
pub type Batches<B> = Pin<Box<dyn Stream<Item = Result<B, Status>> + Send>>;

/// A range of rows to read from a list.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Cursor of the row after which the slice begins; `None` for the start of the list.
    pub after: Option<String>,
    /// Maximum number of rows.
    pub limit: i64,
    /// Pattern for `ilike` that names must match.
    pub pattern: Option<String>,
}

impl Slice {
    /// Returns the first slice of a list.
    pub fn first() -> Self {
        Self { after: None, limit: FIRST_SLICE, pattern: None }
    }

    /// Returns the limit for a statement: a constant if the slice begins a page of the usual length,
    /// and otherwise this parameter. PostgreSQL plans a statement with a constant limit once, and one
    /// with a parameter for each execution, which takes longer than to read a page.
    pub fn limit_or<'a>(&self, parameter: &'a str) -> &'a str {
        const { assert!(USUAL_PAGE == 100) };
        if self.limit == i64::from(USUAL_PAGE) + 1 { "101" } else { parameter }
    }

    /// Returns the upper bound of the ids in the slice, for a list that is ordered by ids, newest
    /// first. No record has the largest id.
    pub fn before(&self) -> Result<Uuid, Fault> {
        let Some(cursor) = &self.after else { return Ok(Uuid::max()) };
        Uuid::try_parse(cursor)
            .map_err(|_| Fault::invalid("cursor", "must be a cursor from a response"))
    }

    /// Reads the rows of the slice as they arrive from the database, up to the byte budget. The
    /// rest of the query is discarded row by row before this returns, so that the connection is
    /// free again while its share is still held.
    pub async fn read<T: Listed, E: Into<Fault>>(
        &self,
        rows: impl Stream<Item = Result<T, E>>,
    ) -> Result<Rows<T>, Fault> {
        let mut rows = std::pin::pin!(rows);
        let (mut items, mut size) = (Vec::new(), 0);
        while let Some(row) = rows.next().await {
            let row = row.map_err(Into::into)?;
            size += row.size();
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

    /// Reads the rows of the slice in parts, up to the byte budget. Parts that follow are not read.
    pub async fn read_parts<T: Listed>(
        &self,
        parts: impl Stream<Item = Result<Vec<T>, Fault>>,
    ) -> Result<Rows<T>, Fault> {
        let mut parts = std::pin::pin!(parts);
        let (mut items, mut size, mut is_cut) = (Vec::new(), 0, false);
        while let Some(mut part) = parts.try_next().await? {
            size += part.iter().map(Listed::size).sum::<usize>();
            items.append(&mut part);
            is_cut = size >= SLICE_SIZE;
            if is_cut {
                break;
            }
        }
        Ok(Rows { items, size, is_cut })
    }
}

/// The rows of a slice.
#[derive(Debug)]
pub struct Rows<T> {
    pub items: Vec<T>,
    /// Size of the rows in bytes.
    size: usize,
    /// Whether reading stopped at the byte budget.
    is_cut: bool,
}

impl<T> Rows<T> {
    /// Whether reading stopped at the byte budget.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Keeps only the first rows.
    pub fn truncate(&mut self, count: usize) {
        self.items.truncate(count);
    }

    /// Appends the rows that follow.
    #[must_use]
    pub fn and(mut self, following: Self) -> Self {
        self.items.extend(following.items);
        Self { items: self.items, size: self.size + following.size, is_cut: following.is_cut }
    }

    /// Converts each row.
    pub fn map<U>(self, of: impl FnMut(T) -> U) -> Rows<U> {
        let Self { items, size, is_cut } = self;
        Rows { items: items.into_iter().map(of).collect(), size, is_cut }
    }
}

/// For lists of few or small rows, which are read without a byte budget.
impl<T: Listed> From<Vec<T>> for Rows<T> {
    fn from(items: Vec<T>) -> Self {
        let size = items.iter().map(Listed::size).sum();
        Self { items, size, is_cut: false }
    }
}

/// A list that is read slice after slice.
struct Slices<F> {
    next: Option<Slice>,
    read: F,
}

impl<F> Slices<F> {
    /// Reads the next slice of at most so many rows. Returns the rows, none at the end of the list,
    /// and their size in bytes.
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
        self.advance(slice, rows)
    }

    /// Sets the position after the rows of a slice. Returns the rows and their size in bytes.
    fn advance<T: Listed>(
        &mut self,
        mut slice: Slice,
        Rows { items, size, is_cut }: Rows<T>,
    ) -> Result<(Vec<T>, usize), Fault> {
        let count = i64::try_from(items.len()).map_err(Fault::internal)?;
        if (is_cut || count >= slice.limit)
            && let Some(last) = items.last()
        {
            slice.after = Some(last.cursor().to_owned());
            slice.limit = next_limit(count, size);
            self.next = Some(slice);
        }
        Ok((items, size))
    }
}

/// Returns the limit of the next slice after one in which `count` rows had `size` bytes.
fn next_limit(count: i64, size: usize) -> i64 {
    let budget = i64::try_from(SLICE_SIZE).unwrap_or(i64::MAX);
    let size = i64::try_from(size).unwrap_or(i64::MAX).max(1);
    budget.saturating_mul(count).div_euclid(size).clamp(1, NEXT_SLICES)
}

/// Returns a list, or the requested page of it. `read` runs the query of one slice. Rows must be
/// ordered by the value that is their cursor.
pub async fn answer<B, T, V, R>(
    page: Option<Page>,
    read: impl Fn(Slice) -> R + Send + 'static,
) -> Result<Response<Batches<B>>, Status>
where
    B: Batch + 'static,
    T: RowOf<B::Item> + 'static,
    V: Into<Rows<T>> + Send + 'static,
    R: Future<Output = Result<V, Fault>> + Send + 'static,
{
    let page = page.unwrap_or_default();
    if page.q.as_ref().is_some_and(|text| text.contains('\0')) {
        return Err(Fault::invalid("q", "must not contain NUL characters").into());
    }
    let pattern = page.q.as_deref().filter(|text| !text.is_empty()).map(pattern);
    let Some(limit) = page.limit else {
        let rows = whole(page.cursor, pattern, read);
        let batches = rows.map(|items| Ok(B::render(&items?, None)?));
        return Ok(Response::new(Box::pin(batches)));
    };
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Fault::invalid("limit", format!("must be 1 to {LONGEST_PAGE}")).into());
    }
    let first = i64::from(limit.min(USUAL_PAGE)) + 1;
    let first = Slice { after: page.cursor, limit: first, pattern };
    let limit = i64::from(limit);
    let (rows, next) = one_page(Slices { next: Some(first), read }, limit).await?;
    let batches = in_messages(rows).into_iter();
    let batches = batches.map(move |items| Ok(B::render(&items, next.clone())?));
    Ok(Response::new(Box::pin(stream::iter(batches))))
}

/// Reads a page of at most `limit` rows, or fewer if they are large. Also returns the cursor of the
/// next page, if there is one.
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
    // One more row than the page has shows that there is a next page.
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

/// Streams all rows from `after` on, in parts that fit into a message each.
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

/// Does the same as [`whole`] for a list whose first slice, [`Slice::first`], has been read.
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
    let (rows, _) = slices.advance(Slice::first(), first)?;
    Ok(stream::iter(in_messages(rows).into_iter().map(Ok)).chain(rest(slices)))
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
        Ok::<_, Fault>((!rows.is_empty()).then(|| (in_messages(rows), slices)))
    });
    slices.map_ok(|parts| stream::iter(parts).map(Ok)).try_flatten()
}

/// Splits messages into parts that fit into a message each.
pub fn split<T: Message>(messages: Vec<T>) -> Vec<Vec<T>> {
    parts::split(messages, MESSAGE_SIZE, T::encoded_len)
}

fn in_messages<T: Listed>(rows: Vec<T>) -> Vec<Vec<T>> {
    parts::split(rows, MESSAGE_SIZE, Listed::size)
}

/// Returns the pattern for `like` and `ilike` of texts that contain `text`.
pub fn pattern(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

#[cfg(test)]
mod tests;
