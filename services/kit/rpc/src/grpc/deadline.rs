//! The header `grpc-timeout`: the time that the caller waits, which the callee observes too.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

const NAME: HeaderName = HeaderName::from_static("grpc-timeout");

/// Returns the timeout in the headers, if there is a valid one.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(NAME)?.to_str().ok()?;
    let (number, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number.checked_mul(3600)?),
        "M" => Duration::from_secs(number.checked_mul(60)?),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// Sets the timeout in headers. The format allows eight digits.
pub(super) fn put(headers: &mut HeaderMap, left: Duration) {
    let millis = left.as_millis().clamp(1, 99_999_999);
    if let Ok(value) = HeaderValue::try_from(format!("{millis}m")) {
        headers.insert(NAME, value);
    }
}

#[test]
fn timeouts_are_parsed_in_every_unit() {
    let read = |text: &'static str| of(&HeaderMap::from_iter([(NAME, text.parse().unwrap())]));
    for (text, seconds) in [("2H", 7200.0), ("3M", 180.0), ("4S", 4.0), ("5m", 0.005)] {
        assert_eq!(read(text), Some(Duration::from_secs_f64(seconds)), "{text}");
    }
    assert_eq!(read("7000000u"), Some(Duration::from_secs(7)));
    assert_eq!(read("8000n"), Some(Duration::from_micros(8)));
    for nonsense in ["", "S", "5", "-1S", "5x", "99999999999999999999S", "5\u{b5}"] {
        assert_eq!(read(nonsense), None, "{nonsense}");
    }
    let mut headers = HeaderMap::new();
    put(&mut headers, Duration::from_secs(15));
    assert_eq!(of(&headers), Some(Duration::from_secs(15)));
}
