//! The public interface, called within this program as the user of a page.

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    http::Extensions,
    response::Response,
};
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
    to_bytes(body, RESPONSE_LIMIT).await.map_err(|error| {
        tracing::error!(%error, "the interface returned a response that cannot be read");
        Failure::internal()
    })
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
    use super::*;

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
