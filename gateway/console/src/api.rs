//! The public interface, called within this program as the user of a page.

use std::fmt::Display;

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::Extensions,
    response::Response,
};
use futures::TryStreamExt as _;
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode, Uri,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, LINK},
    request::Parts,
};
use serde::{Serialize, de::DeserializeOwned};
use tower::ServiceExt;

use crate::failure::{Failure, Problem};

/// The extensions of the request to a page, in those of its calls to the interface.
#[derive(Clone)]
pub struct Visit(pub Extensions);

/// The interface that pages call.
#[derive(Clone)]
pub(crate) struct Console {
    pub(crate) api: Router,
}

/// Maximum size of a response, in bytes: more than an instance with all of its steps has.
const RESPONSE_LIMIT: usize = 64 << 20;

/// The interface for one request of a user.
#[derive(Clone)]
pub(crate) struct Api {
    routes: Router,
    headers: HeaderMap,
    /// The extensions of the request, for layers of the interface.
    visit: Extensions,
}

/// A page of a list.
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// Cursor of the next page, if there is one.
    pub(crate) next: Option<String>,
}

impl Api {
    /// Returns the interface for a request with a token. The host is that of the request, because a
    /// customer may have one of its own.
    pub(crate) fn new(console: &Console, parts: &Parts, token: Option<&str>) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let authority = parts.uri.authority();
        let authority = authority.and_then(|host| HeaderValue::try_from(host.as_str()).ok());
        if let Some(host) = authority.or_else(|| parts.headers.get(HOST).cloned()) {
            headers.insert(HOST, host);
        }
        let bearer = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
        headers.extend(bearer.map(|bearer| (AUTHORIZATION, bearer)));
        Self { routes: console.api.clone(), headers, visit: parts.extensions.clone() }
    }

    /// Reads a record.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<T, Failure> {
        let (_, body) = self.call(Method::GET, &address(path, query), Body::empty()).await?;
        parse(&body)
    }

    /// Reads a record whose last field is an array, which may be long, without this array: the rest of the response is
    /// not read.
    pub(crate) async fn get_without<T: DeserializeOwned>(
        &self,
        path: &str,
        array: &str,
    ) -> Result<T, Failure> {
        let response = self.respond(Method::GET, path, Body::empty()).await?;
        parse(&read_before(response.into_body(), array).await?)
    }

    /// Reads a record with its entity tag.
    pub(crate) async fn get_tagged<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(T, Option<HeaderValue>), Failure> {
        let (headers, body) = self.call(Method::GET, path, Body::empty()).await?;
        Ok((parse(&body)?, headers.get(ETAG).cloned()))
    }

    /// Reads a page of a list.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &impl Serialize,
    ) -> Result<List<T>, Failure> {
        let (headers, body) = self.call(Method::GET, &address(path, query), Body::empty()).await?;
        Ok(List { items: parse(&body)?, next: next_cursor(&headers) })
    }

    /// Sends a record, and returns that of the response.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        record: &impl Serialize,
    ) -> Result<T, Failure> {
        let json = serde_json::to_vec(record).map_err(|_| Failure::internal())?;
        let (_, body) = self.call(method, path, Body::from(json)).await?;
        parse(&body)
    }

    /// Changes a record, whose new state is not read.
    pub(crate) async fn change(&self, path: &str, record: &impl Serialize) -> Result<(), Failure> {
        let json = serde_json::to_vec(record).map_err(|_| Failure::internal())?;
        self.respond(Method::PUT, path, Body::from(json)).await.map(drop)
    }

    /// Deletes a record.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), Failure> {
        self.call(Method::DELETE, path, Body::empty()).await.map(drop)
    }

    /// Deletes a record, unless somebody else has deleted it meanwhile.
    pub(crate) async fn delete_if_any(&self, path: &str) -> Result<(), Failure> {
        match self.delete(path).await {
            Err(failure) if failure.is_not_found() => Ok(()),
            deleted => deleted,
        }
    }

    /// Sends a request without a body.
    pub(crate) async fn post(&self, path: &str) -> Result<(), Failure> {
        self.call(Method::POST, path, Body::empty()).await.map(drop)
    }

    /// Reads a file, part by part.
    pub(crate) async fn download(&self, path: &str) -> Result<Response, Failure> {
        self.respond(Method::GET, path, Body::empty()).await
    }

    async fn call(
        &self,
        method: Method,
        address: &str,
        body: Body,
    ) -> Result<(HeaderMap, Bytes), Failure> {
        let (parts, body) = self.respond(method, address, body).await?.into_parts();
        Ok((parts.headers, read(body).await?))
    }

    /// Returns the response to a request that succeeds.
    async fn respond(
        &self,
        method: Method,
        address: &str,
        body: Body,
    ) -> Result<Response, Failure> {
        let mut request = Request::new(body);
        *request.uri_mut() = address.parse::<Uri>().map_err(|_| Failure::not_found())?;
        request.headers_mut().clone_from(&self.headers);
        if method != Method::GET {
            request
                .headers_mut()
                .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        *request.method_mut() = method;
        request.extensions_mut().insert(Visit(self.visit.clone()));

        let Ok(response) = self.routes.clone().oneshot(request).await;
        match response.status() {
            StatusCode::UNAUTHORIZED => Err(Failure::Unauthenticated),
            status if status.is_success() => Ok(response),
            status => {
                let body = read(response.into_body()).await?;
                Err(Failure::Refused(Problem::read(status, &body)))
            }
        }
    }
}

async fn read(body: Body) -> Result<Bytes, Failure> {
    to_bytes(body, RESPONSE_LIMIT).await.map_err(|error| unreadable(&error))
}

/// Reads the JSON of a record up to its last field, an array with this name, and ends it there.
async fn read_before(body: Body, array: &str) -> Result<Vec<u8>, Failure> {
    // It is not within a text, in which quotes are escaped.
    let begin = format!(",\"{array}\":[");
    let mut parts = body.into_data_stream();
    let mut json = Vec::new();
    while let Some(part) = parts.try_next().await.map_err(|error| unreadable(&error))? {
        let read = json.len().saturating_sub(begin.len());
        json.extend_from_slice(&part);
        let found = json[read..].windows(begin.len()).position(|text| text == begin.as_bytes());
        if let Some(at) = found {
            json.truncate(read + at);
            json.push(b'}');
            break;
        }
        if json.len() > RESPONSE_LIMIT {
            return Err(unreadable(&"it is too large"));
        }
    }
    Ok(json)
}

fn unreadable(error: &impl Display) -> Failure {
    tracing::error!(%error, "the interface returned a response that cannot be read");
    Failure::internal()
}

/// Returns a path with a query.
pub(crate) fn address(path: &str, query: &impl Serialize) -> String {
    match serde_urlencoded::to_string(query) {
        Ok(query) if !query.is_empty() => format!("{path}?{query}"),
        _ => path.to_owned(),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body).map_err(|error| {
        tracing::error!(%error, "the interface returned an unexpected record");
        Failure::internal()
    })
}

/// Reads the cursor in the link to the next page.
fn next_cursor(headers: &HeaderMap) -> Option<String> {
    let link = headers.get(LINK)?.to_str().ok()?;
    let query = link.split_once('>')?.0.split_once('?')?.1;
    let pairs: Vec<(String, String)> = serde_urlencoded::from_str(query).ok()?;
    pairs.into_iter().find_map(|(name, value)| (name == "cursor").then_some(value))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt as _, stream};

    use super::*;

    #[tokio::test]
    async fn a_record_is_read_up_to_its_array() {
        let parts = [r#"{"Name":"a,\"TestCases\":[","Test"#, r#"Cases":[{"Id":"1"}"#];
        let parts = stream::iter(parts.map(Ok::<_, Infallible>)).chain(stream::pending());
        let json = read_before(Body::from_stream(parts), "TestCases").await.unwrap();
        assert_eq!(json, br#"{"Name":"a,\"TestCases\":["}"#);
        let whole = r#"{"Name":"a"}"#;
        let json = read_before(Body::from(whole), "TestCases").await.unwrap();
        assert_eq!(json, whole.as_bytes());
    }

    #[test]
    fn the_cursor_of_the_next_page_is_in_the_link() {
        let mut headers = HeaderMap::new();
        assert_eq!(next_cursor(&headers), None);
        let link = "</api/projects?limit=2&cursor=a%2Fb>; rel=\"next\"";
        headers.insert(LINK, HeaderValue::from_static(link));
        assert_eq!(next_cursor(&headers).as_deref(), Some("a/b"));
    }

    #[test]
    fn a_query_is_encoded() {
        let query = [("q", "a&b=ü"), ("limit", "50")];
        assert_eq!(address("/api/projects", &query), "/api/projects?q=a%26b%3D%C3%BC&limit=50");
        assert_eq!(address("/api/projects", &()), "/api/projects");
    }
}
