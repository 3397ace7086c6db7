//! Headers that a customer adds to the requests of a webhook. Their values are secrets.

use assay_proto::{Fault, notification::WebhookHeader};
use assay_records::Check;
use reqwest::header::HeaderName;
use url::Url;

use crate::{message, secret::MASK};

/// Maximum number of headers of a webhook.
const MAX_HEADERS: usize = 20;

/// Maximum lengths of a name and of a value, in bytes.
const MAX_NAME: usize = 128;
const MAX_VALUE: usize = 2048;

/// Headers that the HTTP client or Assay sets, that proxies trust, or that metadata services of clouds
/// require as a proof that the sender chose the request.
const REFUSED: [&str; 24] = [
    "connection",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "keep-alive",
    "max-forwards",
    "metadata",
    "metadata-flavor",
    "te",
    "traceparent",
    "tracestate",
    "baggage",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-aws-ec2-metadata-token",
    "x-aws-ec2-metadata-token-ttl-seconds",
    "x-google-metadata-request",
    "x-http-method-override",
    "x-method-override",
    "x-real-ip",
];

/// The same, by the beginnings of their names.
const REFUSED_FAMILIES: [&str; 6] =
    ["accept-", "ce-", "content-", "proxy-", "webhook-", "x-forwarded-"];

/// Checks headers. Values may be masked.
pub(super) fn check(check: &mut Check, headers: &[WebhookHeader]) {
    if headers.len() > MAX_HEADERS {
        check.refuse("Headers", format!("must have at most {MAX_HEADERS} entries"));
        return;
    }
    check.within("Headers", |check| {
        for (index, header) in headers.iter().enumerate() {
            let is_repeated =
                headers[..index].iter().any(|other| other.name.eq_ignore_ascii_case(&header.name));
            if let Some(problem) = problem_of_name(&header.name) {
                check.refuse(format!("{index}/Name"), problem);
            } else if is_repeated {
                check.refuse(format!("{index}/Name"), "occurs more than once");
            } else if message::parse(header).is_none() || !is_value(&header.value) {
                let problem = format!(
                    "must have 1 to {MAX_VALUE} visible ASCII characters, with spaces only between them"
                );
                check.refuse(format!("{index}/Value"), problem);
            }
        }
    });
}

fn problem_of_name(name: &str) -> Option<String> {
    if name.len() > MAX_NAME || HeaderName::try_from(name).is_err() {
        return Some(format!(
            "must be the name of an HTTP header, of at most {MAX_NAME} characters"
        ));
    }
    let name = name.to_ascii_lowercase();
    let is_refused = REFUSED.contains(&name.as_str())
        || REFUSED_FAMILIES.iter().any(|family| name.starts_with(family));
    is_refused.then(|| "is a header that HTTP, Assay or proxies set; choose another one".to_owned())
}

fn is_value(value: &str) -> bool {
    (1..=MAX_VALUE).contains(&value.len())
        && value.trim() == value
        && value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

/// Returns headers with their values: masked ones have the `stored` value. A stored value is not sent to
/// another origin than the one that it was set for.
pub(super) fn merge(
    written: &[WebhookHeader],
    stored: &[WebhookHeader],
    stays: bool,
) -> Result<Vec<WebhookHeader>, Fault> {
    let (mut check, mut merged) = (Check::default(), Vec::new());
    for (index, header) in written.iter().enumerate() {
        let field = format!("Headers/{index}/Value");
        let known = stored.iter().find(|known| known.name.eq_ignore_ascii_case(&header.name));
        let value = match known {
            _ if header.value != MASK => &header.value,
            None => {
                check.refuse(field, "is masked, but no value is stored; send the value");
                continue;
            }
            Some(_) if !stays => {
                check.refuse(
                    field,
                    "is masked, but Url leads to another host; send the value again",
                );
                continue;
            }
            Some(known) => &known.value,
        };
        merged.push(WebhookHeader { name: header.name.clone(), value: value.clone() });
    }
    check.done()?;
    Ok(merged)
}

/// Returns headers with their values masked.
pub(super) fn masked(headers: &[WebhookHeader]) -> Vec<WebhookHeader> {
    let mask = |header: &WebhookHeader| WebhookHeader {
        name: header.name.clone(),
        value: MASK.to_owned(),
    };
    headers.iter().map(mask).collect()
}

/// Returns whether two URLs have the same scheme, host and port.
pub(super) fn is_same_origin(one: &str, other: &str) -> bool {
    let origin = |url| Url::parse(url).ok().map(|url| url.origin());
    origin(one).is_some_and(|one| Some(one) == origin(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(name: &str, value: &str) -> WebhookHeader {
        WebhookHeader { name: name.to_owned(), value: value.to_owned() }
    }

    fn fields(headers: &[WebhookHeader]) -> Vec<String> {
        let mut found = Check::default();
        check(&mut found, headers);
        match found.done() {
            Err(Fault::Invalid(violations)) => {
                violations.into_iter().map(|violation| violation.field).collect()
            }
            _ => Vec::new(),
        }
    }

    #[test]
    fn headers_of_http_of_assay_and_of_proxies_are_refused() {
        for good in ["Authorization", "X-Api-Key", "Cookie", "CF-Access-Client-Secret"] {
            assert_eq!(fields(&[header(good, "a b")]), [""; 0], "{good}");
        }
        for refused in [
            "Host",
            "content-length",
            "Content-Type",
            "Transfer-Encoding",
            "Connection",
            "Webhook-Signature",
            "X-Forwarded-For",
            "Proxy-Authorization",
            "Metadata-Flavor",
            "TraceParent",
            "",
            "a b",
            "a:b",
            "a\r\nb",
            "ä",
        ] {
            assert_eq!(fields(&[header(refused, "1")]), ["Headers/0/Name"], "{refused:?}");
        }
        for value in ["", " a", "a ", "a\nb", "a\0", "ä", "\t", &"x".repeat(2049)] {
            assert_eq!(fields(&[header("X-Key", value)]), ["Headers/0/Value"], "{value:?}");
        }
        assert_eq!(fields(&[header("X-Key", "1"), header("x-key", "2")]), ["Headers/1/Name"]);
        let many: Vec<_> = (0..21).map(|number| header(&format!("X-{number}"), "1")).collect();
        assert_eq!(fields(&many), ["Headers"]);
    }

    #[test]
    fn masked_values_are_kept_for_the_same_origin_only() {
        let stored = [header("X-Key", "secret")];
        let masked = [header("x-key", MASK), header("X-New", "1")];
        let merged = merge(&masked, &stored, true).unwrap();
        assert_eq!(merged, [header("x-key", "secret"), header("X-New", "1")]);
        assert!(merge(&masked, &stored, false).is_err());
        assert!(merge(&masked, &[], true).is_err());
        let url = "https://ci.example/hook";
        assert!(is_same_origin(url, "https://ci.example:443/other"));
        for other in
            ["https://evil.example/hook", "http://ci.example/hook", "https://ci.example:8443/"]
        {
            assert!(!is_same_origin(url, other), "{other}");
        }
    }
}
