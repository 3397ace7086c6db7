//! Basic authentication with an API token as the password, and the session of pages for links.

use axum::{Router, extract::Request, middleware::map_request};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::{
    HeaderMap, HeaderValue, Uri,
    header::{AUTHORIZATION, HeaderName},
};

use super::view;
use crate::services::Services;

/// The header of the own interface, which takes precedence there.
const OWN: HeaderName = HeaderName::from_static("authentication");

/// Lets clients send their token as the password of Basic authentication. The name of the user does
/// not matter: the token has a user.
pub(crate) fn signed_in(routes: Router<Services>) -> Router<Services> {
    routes.layer(map_request(async |mut request: Request| {
        let of_page = || session(request.uri(), request.headers());
        if let Some(bearer) = of_password(request.headers()).or_else(of_page) {
            request.headers_mut().remove(OWN);
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        request
    }))
}

/// Returns the session in which a browser follows a link.
fn session(uri: &Uri, headers: &HeaderMap) -> Option<HeaderValue> {
    view::run(uri).and_then(|_| bearer(&assay_console::token(headers)?))
}

fn of_password(headers: &HeaderMap) -> Option<HeaderValue> {
    let (scheme, credentials) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let credentials = scheme.eq_ignore_ascii_case("basic").then_some(credentials.trim())?;
    let credentials = String::from_utf8(STANDARD.decode(credentials).ok()?).ok()?;
    let (_, token) = credentials.split_once(':')?;
    bearer(token)
}

fn bearer(token: &str) -> Option<HeaderValue> {
    let mut bearer = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    bearer.set_sensitive(true);
    Some(bearer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_token() {
        let of = |value: &str| {
            let headers = [(AUTHORIZATION, value.parse().unwrap())].into_iter().collect();
            of_password(&headers).map(|bearer| bearer.to_str().unwrap().to_owned())
        };
        let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
        assert_eq!(of(&basic("ada@example.org:secret:1")).unwrap(), "Bearer secret:1");
        assert_eq!(of(&basic("ada@example.org").replace("Basic", "basic")), None);
        assert_eq!(of(&basic("ada:a\nb")), None);
        for other in ["Bearer abc", "Basic", "Basic ***"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
