//! Cross-origin requests: allowed for the configured origins only.

use std::str::FromStr;

use axum::{
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{
    HeaderMap, HeaderValue, Method,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
        ORIGIN, VARY,
    },
};
use url::Url;

/// Headers of requests that scripts may set.
const REQUEST_HEADERS: &str = "authentication,idempotency-key,last-event-id,traceparent,\
                               x-request-id,authorization,content-type,if-match,if-none-match,\
                               x-file-name,digest,repr-digest,content-digest,range,if-range,\
                               tus-resumable,upload-length,upload-defer-length,upload-offset,\
                               upload-metadata,upload-checksum,x-http-method-override";

/// Headers of responses that scripts may read.
const RESPONSE_HEADERS: &str = "ratelimit,ratelimit-policy,x-request-id,etag,link,location,retry-after,accept-ranges,\
     content-range,content-disposition,repr-digest,content-location,tus-resumable,tus-version,tus-extension,\
     tus-checksum-algorithm,upload-offset,upload-length,upload-defer-length,upload-metadata,upload-expires,\
     assay-file-id";

/// The origin of a web page, such as `https://dashboard.example.org`.
#[derive(Clone, Debug)]
pub struct Origin(HeaderValue);

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let origin = Url::parse(text.trim()).map(|url| url.origin().ascii_serialization());
        let origin = origin.ok().filter(|origin| origin == text.trim());
        let origin = origin.and_then(|origin| HeaderValue::try_from(origin).ok());
        origin.map(Self).ok_or_else(|| {
            format!("{text} is not a valid origin, such as https://dashboard.example.org")
        })
    }
}

/// The origins whose scripts may send requests and read responses.
pub(crate) struct Cors(Vec<HeaderValue>);

impl Cors {
    pub(crate) fn new(origins: &[Origin]) -> Self {
        Self(origins.iter().map(|Origin(origin)| origin.clone()).collect())
    }

    /// Returns the origin of a request if it is one of the configured.
    pub(crate) fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        headers.get(ORIGIN).filter(|origin| self.0.contains(origin)).cloned()
    }

    /// Returns the response to the question of a browser whether it may send a request.
    pub(crate) fn preflight(&self, request: &Request) -> Option<Response> {
        let is_preflight = request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        let asks = !self.0.is_empty() && is_preflight && request.method() == Method::OPTIONS;
        asks.then(|| {
            let headers = [
                (ACCESS_CONTROL_ALLOW_METHODS, "GET,POST,PUT,PATCH,DELETE"),
                (ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
                (ACCESS_CONTROL_MAX_AGE, "600"),
            ];
            headers.into_response()
        })
    }

    /// Lets the scripts of an allowed origin read a response.
    pub(crate) fn add_headers(&self, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        headers.append(VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = origin {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let readable = HeaderValue::from_static(RESPONSE_HEADERS);
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, readable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Origin;

    #[test]
    fn an_origin_is_a_scheme_and_a_host() {
        for origin in ["https://dashboard.example.org", "http://localhost:3000"] {
            assert!(origin.parse::<Origin>().is_ok(), "{origin}");
        }
        for other in ["*", "null", "dashboard.example.org", "https://a.example/", "file:///x"] {
            assert!(other.parse::<Origin>().is_err(), "{other}");
        }
    }
}
