//! Responses with lists, whole or one page at a time.

use std::future::ready;

use assay_proto::{Batch, Listed, Page};
use assay_rpc::list::USUAL_PAGE;
use axum::{
    body::Body,
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use http::{
    HeaderValue, Uri,
    header::{CONTENT_TYPE, LINK},
    request::Parts,
};
use serde::Deserialize;
use tonic::{Status, Streaming};
use url::form_urlencoded;
use utoipa::IntoParams;

use crate::{
    array,
    problem::Problem,
    query::Query,
    rendering::{self, InTurn},
    services::Services,
};

/// Number of records that a page may have.
const LIMITS: std::ops::RangeInclusive<i32> = 1..=1000;

/// The page of a list to return; without `limit`, the whole list.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Maximum number of records to return.
    #[param(value_type = Option<i32>, minimum = 1, maximum = 1000, example = 100)]
    limit: Option<String>,
    /// The cursor in the link of the previous page.
    #[param(example = "019cade2-11c0-7b21-8d4f-0a96c3e15f72")]
    cursor: Option<String>,
    /// Return only records whose name or identifier contains this text, ignoring case.
    #[param(example = "pay")]
    q: Option<String>,
}

/// Like [`Listing`], for records without a name to search for.
pub(crate) struct WithoutSearch(pub(crate) Listing);

impl IntoParams for WithoutSearch {
    fn into_params(
        place: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
    ) -> Vec<utoipa::openapi::path::Parameter> {
        let mut parameters = ListQuery::into_params(place);
        parameters.retain(|parameter| parameter.name != "q");
        parameters
    }
}

impl FromRequestParts<Services> for WithoutSearch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let mut listing = Listing::from_request_parts(parts, services).await?;
        listing.page.q = None;
        Ok(Self(listing))
    }
}

/// The page that a request asks for, and its URL.
pub(crate) struct Listing {
    page: Page,
    uri: Uri,
}

impl IntoParams for Listing {
    fn into_params(
        place: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
    ) -> Vec<utoipa::openapi::path::Parameter> {
        ListQuery::into_params(place)
    }
}

impl Listing {
    /// Returns the requested page.
    pub(crate) fn page(&self) -> Page {
        self.page.clone()
    }

    /// Returns the page of the first records of the list, for [`Listing::respond_from_first`].
    pub(crate) fn first(&self, limit: i32) -> Page {
        Page { limit: Some(limit), cursor: None, ..self.page.clone() }
    }

    /// Returns the requested page if it has the usual length at most, and is without a search.
    pub(crate) fn usual_page(&self) -> Option<Page> {
        let is_usual = self.page.limit.is_some_and(|limit| limit <= USUAL_PAGE);
        (is_usual && self.page.q.is_none()).then(|| self.page.clone())
    }

    /// Responds with a page that has arrived as a whole.
    pub(crate) fn respond_with(self, page: impl Batch) -> List {
        let (items, next) = page.into_parts();
        let next = next.map(|cursor| next_link(&self.uri, &cursor));
        List { next, body: [b"[", &items[..], b"]"].concat().into() }
    }

    /// Responds with the requested page of the records of [`Listing::first`], as if the list had no
    /// others.
    pub(crate) async fn respond_from_first<B: Batch + 'static>(
        self,
        batches: tonic::Response<Streaming<B>>,
    ) -> Result<List, Problem> {
        let batches = batches.into_inner().map(|batch| Ok::<_, Status>(batch?.parse()?));
        let (records, next) = page_of(batches.try_concat().await?, &self.page);
        let next = next.map(|cursor| next_link(&self.uri, &cursor));
        let records = stream::once(ready(Ok((records, None))));
        Ok(List { next, body: array::body(b"[".to_vec(), records, b"]") })
    }

    /// Responds with the records that a service lists. A failure before the first batch is a
    /// [`Problem`].
    pub(crate) async fn respond<B: Batch + 'static>(
        self,
        batches: tonic::Response<Streaming<B>>,
    ) -> Result<List, Problem> {
        let (next, batches) = batches_of(batches).await?;
        let next = next.map(|cursor| next_link(&self.uri, &cursor));
        let body = match self.page.limit {
            Some(_) => array::page(Box::pin(batches)).await?,
            None => array::forwarded(batches),
        };
        Ok(List { next, body })
    }
}

/// Cuts a page out of a complete list, and returns it with the cursor of the next one.
fn page_of<T: Listed>(mut records: Vec<T>, page: &Page) -> (Vec<T>, Option<String>) {
    if let Some(cursor) = &page.cursor {
        let last_seen = records.iter().position(|record| record.cursor() == cursor);
        records.drain(..last_seen.map_or(records.len(), |last_seen| last_seen + 1));
    }
    let limit = page.limit.and_then(|limit| usize::try_from(limit).ok());
    let Some(limit) = limit.filter(|limit| *limit < records.len()) else { return (records, None) };
    records.truncate(limit);
    let next = records.last().map(|record| record.cursor().to_owned());
    (records, next)
}

/// Returns the cursor of the next page, if there is one, and the rendered records in batches. Waits
/// for the first batch, so that a failure before it is a [`Problem`].
async fn batches_of<B: Batch + 'static>(
    batches: tonic::Response<Streaming<B>>,
) -> Result<(Option<String>, impl Stream<Item = Result<InTurn<Bytes>, Status>> + Send), Problem> {
    let mut batches = Box::pin(rendering::messages(batches));
    let first = batches.try_next().await?.map(|(batch, _)| batch).unwrap_or_default();
    let (first, next) = first.into_parts();
    let rest = batches.map_ok(|(batch, share)| (batch.into_parts().0, share));
    Ok((next, stream::once(ready(Ok((first, None)))).chain(rest)))
}

impl List {
    /// Responds with all records that a service returns.
    pub(crate) async fn whole<B: Batch + 'static>(
        batches: tonic::Response<Streaming<B>>,
    ) -> Result<Self, Problem> {
        Ok(Self { next: None, body: whole(batches).await? })
    }
}

/// Returns a body with all records that a service returns, as an array.
pub(crate) async fn whole<B: Batch + 'static>(
    batches: tonic::Response<Streaming<B>>,
) -> Result<Body, Problem> {
    let (_, batches) = batches_of(batches).await?;
    Ok(array::forwarded(batches))
}

/// Returns the records that a service returns, parsed. Waits for the first ones, as [`whole`] does.
pub(crate) async fn parsed<B: Batch + 'static>(
    batches: tonic::Response<Streaming<B>>,
) -> Result<impl Stream<Item = Result<InTurn<Vec<B::Item>>, Status>> + Send, Problem> {
    let (_, batches) = batches_of(batches).await?;
    Ok(batches.map(|batch| {
        let (items, share) = batch?;
        Ok((B::rendered(items, None).parse()?, share))
    }))
}

/// Returns the records of a page.
pub(crate) async fn of_page<B: Batch>(
    batches: tonic::Response<Streaming<B>>,
) -> Result<Vec<B::Item>, Status> {
    let batches = batches.into_inner().map(|batch| Ok::<_, Status>(batch?.parse()?));
    batches.try_concat().await
}

impl FromRequestParts<Services> for Listing {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, services: &Services) -> Result<Self, Problem> {
        let Query(query) = Query::<ListQuery>::from_request_parts(parts, services).await?;
        let limit = query.limit.map(|text| limit(&text)).transpose()?;
        Ok(Self { page: Page { limit, cursor: query.cursor, q: query.q }, uri: parts.uri.clone() })
    }
}

fn limit(text: &str) -> Result<i32, Problem> {
    let limit = text.parse().ok().filter(|limit| LIMITS.contains(limit));
    let (min, max) = (LIMITS.start(), LIMITS.end());
    let rule = || format!("must be a whole number from {min} to {max}");
    limit.ok_or_else(|| Problem::invalid("limit", rule()))
}

/// Returns the link (RFC 8288) to the page after `cursor`.
fn next_link(uri: &Uri, cursor: &str) -> String {
    let kept = uri.query().unwrap_or_default().split('&');
    // A client may have encoded the name, too.
    let is_cursor =
        |pair: &str| form_urlencoded::parse(pair.as_bytes()).all(|one| one.0 == "cursor");
    let kept = kept.filter(|pair| !is_cursor(pair));
    let cursor = format!("cursor={}", percent_encoded(cursor));
    let query: Vec<&str> = kept.chain([cursor.as_str()]).collect();
    format!("<{}?{}>; rel=\"next\"", uri.path(), query.join("&"))
}

fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// A list as JSON, with a link to the next page.
pub(crate) struct List {
    next: Option<String>,
    body: Body,
}

impl IntoResponse for List {
    fn into_response(self) -> Response {
        let content = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let next = self.next.and_then(|link| HeaderValue::try_from(link).ok());
        (content, next.map(|link| [(LINK, link)]), self.body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::execution::ExecutionEntry;

    use super::*;

    #[test]
    fn a_complete_list_is_cut_into_pages() {
        let entry = |id: i32| ExecutionEntry { id: id.to_string(), ..ExecutionEntry::default() };
        let entries: Vec<_> = (1..=30).map(entry).collect();
        for (limit, cursor, expected, next) in [
            (None, None, 1..31, None),
            (Some(30), None, 1..31, None),
            (Some(12), None, 1..13, Some("12")),
            (Some(12), Some("12"), 13..25, Some("24")),
            (Some(12), Some("24"), 25..31, None),
            (Some(12), Some("30"), 31..31, None),
            (None, Some("unknown"), 31..31, None),
        ] {
            let page = Page { limit, cursor: cursor.map(str::to_owned), q: None };
            let (records, cursor) = page_of(entries.clone(), &page);
            assert_eq!(records, expected.map(entry).collect::<Vec<_>>(), "{page:?}");
            assert_eq!(cursor.as_deref(), next, "{page:?}");
        }
    }
}
