//! Requests and responses as they are kept for the people who manage a webhook: bounded, and without
//! secrets.

use std::{borrow::Cow, time::Duration};

use assay_proto::notification::WebhookHeader;
use reqwest::header::{HeaderMap, HeaderValue, SET_COOKIE};

use crate::secret::MASK;

/// Maximum number of bytes that are kept of a body, and of the headers of a response.
pub(crate) const KEPT: usize = 4096;

/// Length in bytes from which the parts of a secret value are masked, too: a receiver may return the token of
/// `Bearer …` alone. Shorter ones would mask ordinary words of a response.
const WORD: usize = 8;

/// Characters that stand for themselves in JSON and in URLs, like letters and digits.
const PLAIN: &str = "-_.~";

/// A request and its response.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) request_headers: Vec<WebhookHeader>,
    pub(crate) request_body: String,
    pub(crate) response_headers: Vec<WebhookHeader>,
    /// Absent without a response.
    pub(crate) response_body: Option<String>,
    /// Time until the response or the failure.
    pub(crate) duration: Duration,
}

impl Exchange {
    /// Begins with a request. Headers that are marked as sensitive have secret values.
    pub(crate) fn of(headers: &HeaderMap, body: &[u8]) -> Self {
        let shown = |value: &HeaderValue| {
            if value.is_sensitive() { MASK.to_owned() } else { text(value.as_bytes()) }
        };
        let headers = headers.iter().map(|(name, value)| header(name.as_str(), shown(value)));
        Self {
            request_headers: headers.collect(),
            request_body: text(first(body)),
            ..Self::default()
        }
    }

    /// Adds the response to a request with these headers, and whether its body is whole.
    pub(crate) fn answered(
        &mut self,
        request: &HeaderMap,
        response: &HeaderMap,
        (body, is_whole): (&[u8], bool),
    ) {
        let secrets = Secrets::of(request);
        let mut size = 0;
        let shown = response.iter().map(|(name, value)| {
            let is_cookie = name == SET_COOKIE;
            let value = if is_cookie { MASK.into() } else { secrets.mask(&text(value.as_bytes())) };
            header(name.as_str(), value)
        });
        let shown = shown.take_while(|header| {
            size += header.name.len() + header.value.len();
            size <= KEPT
        });
        self.response_headers = shown.collect();
        // A secret that is cut at the end would not be found.
        let mut masked = secrets.mask(&text(body));
        if !is_whole {
            secrets.trim(&mut masked);
        }
        self.response_body = Some(text(first(masked.as_bytes())));
    }
}

/// The secret values of the headers of a request and their parts, in the spellings of encoders, longest first.
struct Secrets(Vec<String>);

impl Secrets {
    fn of(request: &HeaderMap) -> Self {
        let values = request.values().filter(|value| value.is_sensitive());
        let parts = values.flat_map(|value| parts(&text(value.as_bytes())));
        let spellings = parts.flat_map(|part| spellings(&part));
        let mut secrets: Vec<_> = spellings.filter(|secret| !secret.is_empty()).collect();
        secrets.sort_unstable_by(|one, other| {
            other.len().cmp(&one.len()).then_with(|| one.cmp(other))
        });
        secrets.dedup();
        Self(secrets)
    }

    fn mask(&self, text: &str) -> String {
        let masked = self.0.iter().fold(Cow::Borrowed(text), |text, secret| {
            if text.contains(secret) { text.replace(secret, MASK).into() } else { text }
        });
        masked.into_owned()
    }

    /// Removes the beginning of a secret from the end of a text.
    fn trim(&self, text: &mut String) {
        let cut = |secret: &String| {
            (1..secret.len()).rev().find(|&length| {
                secret.is_char_boundary(length) && text.ends_with(&secret[..length])
            })
        };
        let longest = self.0.iter().filter_map(cut).max().unwrap_or_default();
        text.truncate(text.len() - longest);
    }
}

/// Returns a value, its words, and its pieces between characters that encoders escape, which no encoder changes.
fn parts(value: &str) -> Vec<String> {
    let words = value.split([' ', '=', ',', ';', ':', '"']);
    let is_plain = |char: char| char.is_ascii_alphanumeric() || PLAIN.contains(char);
    let pieces = value.split(|char: char| !is_plain(char));
    let long = words.chain(pieces).filter(|part| part.len() >= WORD);
    long.chain([value]).map(ToOwned::to_owned).collect()
}

/// Returns a secret as it is, and as it stands in JSON and in URLs. Encoders escape `/` or not, and write digits in
/// upper or lower case.
fn spellings(secret: &str) -> [String; 7] {
    let json = secret.replace('\\', r"\\").replace('"', r#"\""#);
    let url = |kept: &str, digits: &[u8; 16]| percent_encoded(secret, kept, digits);
    let (upper, lower) = (b"0123456789ABCDEF", b"0123456789abcdef");
    [
        secret.to_owned(),
        json.replace('/', r"\/"),
        json,
        url("", upper),
        url("", lower),
        url("/", upper),
        url("/", lower),
    ]
}

/// Returns a text as it stands in a URL, where some characters are kept.
fn percent_encoded(text: &str, kept: &str, digits: &[u8; 16]) -> String {
    let digit = |value: u8| char::from(digits[usize::from(value)]);
    let mut encoded = String::new();
    for byte in text.bytes() {
        let char = char::from(byte);
        if char.is_ascii_alphanumeric() || PLAIN.contains(char) || kept.contains(char) {
            encoded.push(char);
        } else {
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

fn header(name: &str, value: String) -> WebhookHeader {
    WebhookHeader { name: name.to_owned(), value }
}

fn first(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(KEPT)]
}

/// Returns text as PostgreSQL accepts it. A character that is cut at the end is left out.
fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.push_str(chunk.valid());
        let invalid = std::str::from_utf8(chunk.invalid());
        let is_cut = invalid.is_err_and(|error| error.error_len().is_none());
        if invalid.is_err() && !(is_cut && chunks.peek().is_none()) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text.replace('\0', "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};

    use super::*;

    fn request() -> (HeaderMap, Vec<u8>) {
        let mut secret = HeaderValue::from_static("Bearer 2b7e151628aed2a6");
        secret.set_sensitive(true);
        let plain = HeaderValue::from_static("application/json");
        let headers = [(AUTHORIZATION, secret), (CONTENT_TYPE, plain)].into_iter().collect();
        (headers, "ä".repeat(KEPT).into_bytes())
    }

    #[test]
    fn secrets_are_masked_in_requests_and_wherever_a_receiver_returns_them() {
        let (headers, body) = request();
        let mut exchange = Exchange::of(&headers, &body);
        let shown = |headers: &[WebhookHeader]| {
            let one = |header: &WebhookHeader| format!("{}: {}", header.name, header.value);
            headers.iter().map(one).collect::<Vec<_>>()
        };
        let request = ["authorization: ********", "content-type: application/json"];
        assert_eq!(shown(&exchange.request_headers), request);
        let response: HeaderMap = [
            (CONTENT_TYPE, HeaderValue::from_static("text/plain; got=2b7e151628aed2a6")),
            (SET_COOKIE, HeaderValue::from_static("session=1")),
        ]
        .into_iter()
        .collect();
        let body = br#"{"Authorization":"Bearer 2b7e151628aed2a6","token":"2b7e151628aed2a6"}"#;
        exchange.answered(&headers, &response, (&body[..], true));
        let response = ["content-type: text/plain; got=********", "set-cookie: ********"];
        assert_eq!(shown(&exchange.response_headers), response);
        let body = exchange.response_body.as_deref();
        assert_eq!(body, Some(r#"{"Authorization":"********","token":"********"}"#));

        // The response has broken off.
        for (body, shown) in [
            ("token=2b7e151628aed2a6 again=2b7e151628aed2a", "token=******** again="),
            ("Authorization=Bearer 2b7e", "Authorization="),
        ] {
            exchange.answered(&headers, &HeaderMap::new(), (body.as_bytes(), false));
            assert_eq!(exchange.response_body.as_deref(), Some(shown));
        }
    }

    #[test]
    fn secrets_are_masked_as_encoders_of_json_and_urls_write_them() {
        let mut secret = HeaderValue::from_static(r#"Bearer ab/cdEF0123+gh"ij\kl=="#);
        secret.set_sensitive(true);
        let headers: HeaderMap = [(AUTHORIZATION, secret)].into_iter().collect();
        let mut exchange = Exchange::default();
        for (body, shown) in [
            (r#"{"got":"Bearer ab/cdEF0123+gh\"ij\\kl=="}"#, r#"{"got":"********"}"#),
            (r#"{"got":"Bearer ab\/cdEF0123+gh\"ij\\kl=="}"#, r#"{"got":"********"}"#),
            (r#"{"token":"ab\/cdEF0123+gh"}"#, r#"{"token":"********"}"#),
            ("got=Bearer%20ab%2FcdEF0123%2Bgh%22ij%5Ckl%3D%3D&x=1", "got=********&x=1"),
            ("got=Bearer%20ab%2fcdEF0123%2bgh%22ij%5ckl%3d%3d&x=1", "got=********&x=1"),
            ("token=ab/cdEF0123%2Bgh", "token=********"),
            // Long pieces are masked in any encoding, and short ones are not.
            (r#"{"token":"ab\u002fcdEF0123\u002bgh"}"#, r#"{"token":"ab\u002f********\u002bgh"}"#),
            ("Bearer of ab/cd", "Bearer of ab/cd"),
        ] {
            exchange.answered(&headers, &HeaderMap::new(), (body.as_bytes(), true));
            assert_eq!(exchange.response_body.as_deref(), Some(shown));
        }
        let broken_off = br#"{"token":"ab\/cdEF01"#;
        exchange.answered(&headers, &HeaderMap::new(), (&broken_off[..], false));
        assert_eq!(exchange.response_body.as_deref(), Some(r#"{"token":""#));
    }

    #[test]
    fn logged_bodies_and_headers_are_bounded_and_text() {
        let (headers, body) = request();
        let mut exchange = Exchange::of(&headers, &body);
        assert_eq!(exchange.request_body, "ä".repeat(KEPT / 2));
        let large = HeaderValue::from_str(&"x".repeat(KEPT)).unwrap();
        let response = [(CONTENT_TYPE, large)].into_iter().collect();
        exchange.answered(&headers, &response, (&b"a\0b\xff\xe2\x82"[..], true));
        assert_eq!(exchange.response_headers, []);
        assert_eq!(exchange.response_body.as_deref(), Some("a\u{fffd}b\u{fffd}"));
    }
}
