//! Identifiers that are generated.

/// Lengths of the parts of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// Returns the length of the letters and digits that a text starts with, in bytes.
pub(crate) fn run(text: &str) -> usize {
    text.find(|char: char| !char.is_alphanumeric()).unwrap_or(text.len())
}

/// Returns the word that a UUID is glued to, and the length of both in bytes, as in
/// `order8c5a1c0e-4f0b-4a57-9d3e-3f1c2b7a9e10`.
pub(crate) fn uuid(text: &str) -> Option<(&str, usize)> {
    let first = run(text);
    let glued = first.checked_sub(UUID[0])?;
    let uuid = text.get(glued..glued + 36)?;
    let parts = uuid.split('-').map(|part| (part.len(), part));
    let is_hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid =
        parts.clone().map(|(length, _)| length).eq(UUID) && parts.clone().all(|(_, p)| is_hex(p));
    is_uuid.then(|| (&text[..glued], glued + 36))
}

/// Returns whether letters and digits are an address of memory, a digest, a key or the random part
/// of a name. `before` is the character before them.
pub(crate) fn is_random(before: Option<char>, run: &str) -> bool {
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    digits > 0
        && run.is_ascii()
        && (is_address(before, run)
            || is_digest(run)
            || is_key(run)
            || is_suffix(before, run)
            || is_temporary(run))
}

/// Recognizes the beginning of an id, of which the rest is left out: `15626...`.
pub(crate) fn is_cut(text: &str, run: &str) -> bool {
    text[run.len()..].starts_with("...") && run.bytes().any(|byte| byte.is_ascii_digit())
}

/// Recognizes `0x7f91dfc3b9d0`, and `1b28cdf` of `java.lang.Object@1b28cdf`.
fn is_address(before: Option<char>, run: &str) -> bool {
    let is_hash = before == Some('@') && run.len() > 4 && is_hex(run);
    is_hash || run.strip_prefix("0x").is_some_and(|digits| is_hex(digits) && digits.len() > 2)
}

/// Recognizes 8 hexadecimal digits and more.
fn is_digest(run: &str) -> bool {
    run.len() >= 8 && is_hex(run)
}

/// Recognizes 16 letters and digits and more, with 3 digits in 2 places. Names of functions have
/// fewer digits.
fn is_key(run: &str) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let is_change = |pair: &&[u8]| !is_digit(&pair[0]) && is_digit(&pair[1]);
    let places = run.as_bytes().windows(2).filter(is_change).count();
    run.len() >= 16
        && places >= 2
        && run.as_bytes().iter().filter(|byte| is_digit(byte)).count() > 2
}

/// Recognizes `kx6g0` of `shop-5d4f8c7b9-kx6g0`, but not `html5` of `shop-html5`.
fn is_suffix(before: Option<char>, run: &str) -> bool {
    let is_lower = run.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let word = run.trim_end_matches(|char: char| char.is_ascii_digit());
    let is_mixed = word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().filter(u8::is_ascii_lowercase).count() > 1;
    before == Some('-') && matches!(run.len(), 5 | 8..=10) && is_lower && is_mixed
}

/// Recognizes `tmp4kq0xz9a`, the name of a temporary file or folder in Python.
fn is_temporary(run: &str) -> bool {
    run.len() == 11 && run.starts_with("tmp")
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
