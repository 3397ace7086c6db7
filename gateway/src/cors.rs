//! Cross-origin requests: allowed for the configured origins only.

use std::{str::FromStr, time::Duration};

use http::{
    HeaderName, HeaderValue, Method,
    header::{
        AUTHORIZATION, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH, LINK, LOCATION, RETRY_AFTER,
    },
};
use tower_http::cors::CorsLayer;
use url::Url;

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

/// Returns the layer that answers preflight requests and adds the headers of CORS.
pub(crate) fn layer(origins: &[Origin]) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(origins.iter().map(|Origin(origin)| origin.clone()).collect::<Vec<_>>())
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers(
            ["authentication", "idempotency-key", "last-event-id", "traceparent", "x-request-id"]
                .map(HeaderName::from_static)
                .into_iter()
                .chain([AUTHORIZATION, CONTENT_TYPE, IF_MATCH, IF_NONE_MATCH])
                .collect::<Vec<_>>(),
        )
        .expose_headers(
            ["ratelimit", "ratelimit-policy", "x-request-id"]
                .map(HeaderName::from_static)
                .into_iter()
                .chain([ETAG, LINK, LOCATION, RETRY_AFTER])
                .collect::<Vec<_>>(),
        )
        .max_age(Duration::from_mins(10))
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
