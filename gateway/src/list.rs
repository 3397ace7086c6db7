//! Lists: whole, or a page at a time.

use std::future::ready;

use assay_proto::{Batch, Listed, Page};
use axum::{
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use http::{
    HeaderValue, Uri,
    header::{CONTENT_TYPE, LINK},
    request::Parts,
};
use serde::{Deserialize, Serialize};
use tonic::{Status, Streaming};
use utoipa::IntoParams;

use crate::{
    array,
    problem::Problem,
    query::Query,
    turn::{self, Part},
};

/// How many records a page may have.
const LIMITS: std::ops::RangeInclusive<i32> = 1..=1000;

/// Which part of a list to answer; without `limit` it is answered whole.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// How many records to answer at most.
    #[param(value_type = Option<i32>, minimum = 1, maximum = 1000, example = 100)]
    limit: Option<String>,
    /// Where to go on: the cursor in the link of the previous part.
    #[param(example = "019cade2-11c0-7b21-8d4f-0a96c3e15f72")]
    cursor: Option<String>,
    /// Only records whose name or identifier contains this text, in any case.
    #[param(example = "pay")]
    q: Option<String>,
}

/// As [`Listing`], of records that have no name.
pub(crate) struct Nameless(pub(crate) Listing);

impl IntoParams for Nameless {
    fn into_params(
        place: impl Fn() -> Option<utoipa::openapi::path::ParameterIn>,
    ) -> Vec<utoipa::openapi::path::Parameter> {
        let mut parameters = ListQuery::into_params(place);
        parameters.retain(|parameter| parameter.name != "q");
        parameters
    }
}

impl<S: Sync + Send> FromRequestParts<S> for Nameless {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let mut listing = Listing::from_request_parts(parts, state).await?;
        listing.page.q = None;
        Ok(Self(listing))
    }
}

/// What part of which list a request asks for.
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
    /// The part that was asked for.
    pub(crate) fn page(&self) -> Page {
        self.page.clone()
    }

    /// The first records of the list, for [`Listing::answer_first`].
    pub(crate) fn first(&self, most: i32) -> Page {
        Page { limit: Some(most), cursor: None, ..self.page.clone() }
    }

    /// Answers the part that was asked for of [`Listing::first`], after which the list is over.
    pub(crate) async fn answer_first<B: Batch<Item: Serialize> + 'static>(
        self,
        batches: tonic::Response<Streaming<B>>,
    ) -> Result<List, Problem> {
        let (_, parts) = parts(batches).await?;
        let records = parts.map_ok(Part::into_inner).try_concat().await?;
        let (records, next) = part_of(records, &self.page);
        let next = next.map(|cursor| next_link(&self.uri, &cursor));
        let records = stream::once(ready(Ok(Part::ready(records))));
        Ok(List { next, body: array::body(b"[".to_vec(), records, b"]") })
    }

    /// Answers with what a service lists. A failure before the first batch is a [`Problem`].
    pub(crate) async fn answer<B: Batch<Item: Serialize> + 'static>(
        self,
        batches: tonic::Response<Streaming<B>>,
    ) -> Result<List, Problem> {
        let (next, parts) = parts(batches).await?;
        let next = next.map(|cursor| next_link(&self.uri, &cursor));
        Ok(List { next, body: array::body(b"[".to_vec(), parts, b"]") })
    }
}

/// The page of a list that is there as a whole, and the cursor of the next one.
fn part_of<T: Listed>(mut records: Vec<T>, page: &Page) -> (Vec<T>, Option<String>) {
    if let Some(cursor) = &page.cursor {
        let place = records.iter().position(|record| record.cursor() == cursor);
        records.drain(..place.map_or(records.len(), |place| place + 1));
    }
    let limit = page.limit.and_then(|limit| usize::try_from(limit).ok());
    let Some(limit) = limit.filter(|limit| *limit < records.len()) else { return (records, None) };
    records.truncate(limit);
    let next = records.last().map(|record| record.cursor().to_owned());
    (records, next)
}

/// The cursor of the next page, if there is one, and the records in parts. Waits for the first, so
/// that a failure before it is a [`Problem`].
pub(crate) async fn parts<B: Batch + 'static>(
    batches: tonic::Response<Streaming<B>>,
) -> Result<(Option<String>, impl Stream<Item = Result<Part<Vec<B::Item>>, Status>> + Send), Problem>
{
    let mut batches = Box::pin(turn::messages(batches));
    let first = batches.try_next().await?.map(Part::into_inner).unwrap_or_default();
    let (first, next) = first.into_parts();
    let rest = batches.map_ok(|batch| batch.map(|batch| batch.into_parts().0));
    Ok((next, stream::once(ready(Ok(Part::ready(first)))).chain(rest)))
}

impl List {
    /// All that a service answers, as an array.
    pub(crate) async fn whole<B: Batch<Item: Serialize> + 'static>(
        batches: tonic::Response<Streaming<B>>,
    ) -> Result<Self, Problem> {
        let (_, parts) = parts(batches).await?;
        Ok(Self { next: None, body: array::body(b"[".to_vec(), parts, b"]") })
    }
}

impl<S: Sync + Send> FromRequestParts<S> for Listing {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(query) = Query::<ListQuery>::from_request_parts(parts, state).await?;
        let limit = query.limit.map(|text| limit(&text)).transpose()?;
        Ok(Self { page: Page { limit, cursor: query.cursor, q: query.q }, uri: parts.uri.clone() })
    }
}

fn limit(text: &str) -> Result<i32, Problem> {
    let limit = text.parse().ok().filter(|limit| LIMITS.contains(limit));
    let (least, most) = (LIMITS.start(), LIMITS.end());
    limit.ok_or_else(|| Problem::invalid("limit", format!("must be from {least} to {most}")))
}

/// The same list from `cursor` on, as a link (RFC 8288).
fn next_link(uri: &Uri, cursor: &str) -> String {
    let kept = uri.query().unwrap_or_default().split('&');
    let kept = kept.filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
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

/// The answer to a request for a list.
pub(crate) struct List {
    next: Option<String>,
    body: axum::body::Body,
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
    fn a_list_of_so_many_ends_with_the_last_of_them() {
        let entry = |id: i32| ExecutionEntry { id: id.to_string(), ..ExecutionEntry::default() };
        let entries: Vec<_> = (1..=30).map(entry).collect();
        for (limit, cursor, expected, next) in [
            (None, None, 1..31, None),
            (Some(30), None, 1..31, None),
            (Some(12), None, 1..13, Some("12")),
            (Some(12), Some("12"), 13..25, Some("24")),
            (Some(12), Some("24"), 25..31, None),
            (Some(12), Some("30"), 31..31, None),
            (None, Some("none of them"), 31..31, None),
        ] {
            let page = Page { limit, cursor: cursor.map(str::to_owned), q: None };
            let (part, cursor) = part_of(entries.clone(), &page);
            assert_eq!(part, expected.map(entry).collect::<Vec<_>>(), "{page:?}");
            assert_eq!(cursor.as_deref(), next, "{page:?}");
        }
    }
}
