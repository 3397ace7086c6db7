//! Sessions: the token of the user in a cookie that scripts cannot read. The gateway stores nothing.

mod next;
mod origin;

use axum::{
    extract::{FromRequestParts, Request},
    middleware::Next as Handler,
    response::{IntoResponse, Redirect, Response},
};
use cookie::{Cookie, SameSite};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{COOKIE, SET_COOKIE},
    request::Parts,
};
use serde::Deserialize;

pub(crate) use self::next::Next;
use crate::{
    api::{Api, Console},
    claims::Claims,
    failure::{Failure, foreign},
};

/// Name of the cookie where the browser can be sure that no other host has set it.
const OWN_COOKIE: &str = "__Host-assay";

/// Name of the cookie over plain http.
const PLAIN_COOKIE: &str = "assay";

/// The user of a page, and the interface that is called with the user's token.
pub(crate) struct Session {
    pub(crate) api: Api,
    pub(crate) user: Claims,
}

impl FromRequestParts<Console> for Session {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, console: &Console) -> Result<Self, Failure> {
        let token = token(&parts.headers).ok_or(Failure::Unauthenticated)?;
        let user = Claims::of(&token).ok_or(Failure::Unauthenticated)?;
        Ok(Self { api: Api::new(console, parts, Some(&token)), user })
    }
}

/// A token as the interface returns it.
#[derive(Deserialize)]
pub(crate) struct Token {
    token: String,
}

impl Token {
    /// Makes the response begin a session with this token.
    pub(crate) fn store(
        &self,
        mut response: Response,
        headers: &HeaderMap,
    ) -> Result<Response, Failure> {
        let lifetime = Claims::of(&self.token).ok_or_else(Failure::internal)?.lifetime();
        let cookie = cookie(&self.token, lifetime, headers).ok_or_else(Failure::internal)?;
        response.headers_mut().append(SET_COOKIE, cookie);
        Ok(response)
    }
}

/// Rejects requests to change something that other pages have sent, lets users log in who have to, and leads from a
/// path that only takes a form to the page above it.
pub(crate) async fn guard(request: Request, handler: Handler) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads && !origin::is_own(request.headers(), request.uri()) {
        return foreign();
    }
    let (here, above) = if reads {
        (Next::of(request.uri()), Some(Next::above(request.uri())))
    } else {
        (Next::referrer(request.headers()), None)
    };
    let response = handler.run(request).await;
    match (response.status(), above) {
        (StatusCode::UNAUTHORIZED, _) => Redirect::to(&here.login(!reads)).into_response(),
        (StatusCode::METHOD_NOT_ALLOWED, Some(above)) => {
            Redirect::to(above.as_str()).into_response()
        }
        _ => response,
    }
}

/// Returns the token in the cookie of a request, not verified.
pub fn token(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let cookies: Vec<_> = lines.flat_map(Cookie::split_parse).flatten().collect();
    let value = |name| cookies.iter().find(|cookie| cookie.name() == name).map(Cookie::value);
    // A neighbouring host can set a plain cookie, but not where the browser accepts the other.
    let plain = || value(PLAIN_COOKIE).filter(|_| !origin::is_trustworthy(headers));
    value(OWN_COOKIE).or_else(plain).filter(|token| !token.is_empty()).map(str::to_owned)
}

/// Returns the header that stores a token for its lifetime.
fn cookie(token: &str, seconds: i64, headers: &HeaderMap) -> Option<HeaderValue> {
    let is_trustworthy = origin::is_trustworthy(headers);
    let name = if is_trustworthy { OWN_COOKIE } else { PLAIN_COOKIE };
    let cookie = Cookie::build((name, token))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(is_trustworthy)
        .max_age(cookie::time::Duration::seconds(seconds));
    HeaderValue::try_from(cookie.to_string()).ok()
}

/// Removes the cookie from the browser.
pub(crate) fn forget(response: &mut Response, headers: &HeaderMap) {
    if let Some(removed) = cookie("", 0, headers) {
        response.headers_mut().append(SET_COOKIE, removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let lines = lines.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), HeaderValue::try_from(*value).unwrap())
        });
        lines.collect()
    }

    #[test]
    fn the_cookie_is_bound_to_the_host_where_the_browser_allows_that() {
        let own = cookie("t", 43_200, &headers(&[("sec-fetch-site", "same-origin")])).unwrap();
        assert_eq!(own, "__Host-assay=t; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=43200");
        let origin = headers(&[("origin", "http://acme.assay.test")]);
        let plain = cookie("t", 60, &origin).unwrap();
        assert_eq!(plain, "assay=t; HttpOnly; SameSite=Lax; Path=/; Max-Age=60");
    }

    #[test]
    fn a_plain_cookie_counts_over_plain_http_only() {
        let cookies = ("cookie", "other=1; assay=forged");
        assert_eq!(token(&headers(&[cookies])).as_deref(), Some("forged"));
        assert_eq!(token(&headers(&[cookies, ("sec-fetch-site", "none")])), None);
        let both = [("cookie", "assay=forged; __Host-assay=own")];
        assert_eq!(token(&headers(&both)).as_deref(), Some("own"));
        assert_eq!(token(&headers(&[("cookie", "__Host-assay=")])), None);
    }
}
