//! Numbers, and those that are part of the cause.

/// Placeholder of a number.
pub(crate) const NUMBER: &str = "<n>";

/// Units that are written without a space: of time, of data, of lengths, and suffixes of literals.
const UNITS: &[&str] = &[
    "ns", "us", "µs", "μs", "ms", "s", "sec", "m", "min", "h", "d", "b", "kb", "mb", "gb", "kib",
    "mib", "gib", "k", "px", "l", "f", "n", "x",
];

/// Words before a number that names an error.
const NAMING: &[&str] =
    &["status", "http", "https", "code", "response", "errno", "signal", "sqlstate", "hresult"];

/// Ports of databases, brokers and other services, which tests do not choose at random.
const SERVICES: &[u16] = &[
    80, 443, 1433, 1521, 3000, 3306, 4222, 4444, 5432, 5672, 6379, 8080, 8443, 9000, 9092, 9200,
    11211, 27017,
];

/// Registered status codes of HTTP.
const STATUSES: &[u16] = &[
    100, 101, 103, 200, 201, 202, 203, 204, 205, 206, 207, 300, 301, 302, 303, 304, 307, 308, 400,
    401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417, 418, 421,
    422, 423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 507, 508, 511,
];

/// Returns the length in bytes of the number that a text starts with, including its decimals and
/// its unit: `17`, `1,024.5`, `1e-9`, `5m0s`, `284L`, `10%`. A word such as `2nd` is not a number, and
/// that of `3.2nd` ends before the point.
pub(crate) fn length(text: &str) -> Option<usize> {
    let (mut end, mut point) = (0, None);
    loop {
        end += digits(&text[end..])?;
        let unit = letters(&text[end..]);
        if unit > 0 && !UNITS.contains(&text[end..end + unit].to_lowercase().as_str()) {
            return point;
        }
        end += unit;
        let rest = &text[end..];
        let decimals = rest.strip_prefix(['.', ',']).filter(|_| unit == 0).and_then(digits);
        if decimals.is_some() {
            point = Some(end);
            end += 1;
        } else if unit == 0 || digits(rest).is_none() {
            let sign = usize::from(rest.starts_with('%'));
            return if rest.starts_with('_') { point } else { Some(end + sign) };
        }
    }
}

/// Returns the length of digits and of an exponent: `1024`, `1e-9`.
fn digits(text: &str) -> Option<usize> {
    let run = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let digits = Some(run(text)).filter(|digits| *digits > 0)?;
    let exponent = text[digits..].strip_prefix(['e', 'E']).map_or("", |rest| rest);
    let power = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let length = 1 + exponent.len() - power.len() + run(power);
    Some(if run(power) > 0 { digits + length } else { digits })
}

fn letters(text: &str) -> usize {
    text.chars().take_while(|char| char.is_alphabetic()).map(char::len_utf8).sum()
}

/// Returns whether a number is a registered status code of HTTP.
pub(crate) fn is_status(number: &str) -> bool {
    number.parse().is_ok_and(|number: u16| STATUSES.contains(&number))
}

/// Returns whether a port is that of a service, with or without a colon before it.
pub(crate) fn is_service(port: &str) -> bool {
    let port = port.strip_prefix(':').unwrap_or(port);
    port.parse().is_ok_and(|port: u16| SERVICES.contains(&port))
}

/// Returns whether a number names an error, as in `HTTP 503`, `HTTPError: 404`, `<Response [500]>`,
/// `errno=111` and `exit status 3`. `before` is the text before the number.
pub(crate) fn is_name(before: &str, number: &str) -> bool {
    let is_plain = number.len() <= 5 && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_code = is_plain || number.starts_with("0x");
    // `HTTP/1.1 503`
    let before = before.trim_end().strip_suffix("/<n>").unwrap_or(before);
    let before = before.trim_end_matches(|char: char| " :=[(<>\"'/!-".contains(char));
    let word = before.rsplit(|char: char| !char.is_ascii_alphabetic()).next().unwrap_or_default();
    let word = word.to_ascii_lowercase();
    let is_named = NAMING.iter().any(|naming| word.ends_with(naming));
    is_code && is_named || is_status(number) && word.starts_with("http")
}

/// Returns whether a number is a port, as in `localhost:40123` and `port=40123`. `before` is the text
/// before the number.
pub(crate) fn is_port(before: &str, number: &str) -> bool {
    let is_plain = (4..=5).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_digit());
    let is_host =
        |text: &str| text.ends_with(|char: char| char.is_alphanumeric() || "]>".contains(char));
    let word = before.trim_end_matches(['=', ':', ' ', '\'', '"']);
    is_plain && (before.strip_suffix(':').is_some_and(is_host) || word.ends_with("port"))
}
