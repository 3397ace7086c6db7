//! The size and the digest of a file, which its client states before it sends the file.

use assay_digest::hex;
use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, header::CONTENT_LENGTH};

use crate::{body::media_type, problem::Problem};

/// Headers with the digest of a file: RFC 3230, and RFC 9530 with two names for a body without an encoding.
const DIGEST: HeaderName = HeaderName::from_static("digest");
const DIGESTS: [HeaderName; 2] =
    [HeaderName::from_static("repr-digest"), HeaderName::from_static("content-digest")];

/// The facts about a file in the head of its request.
#[derive(Debug)]
pub(crate) struct Announced {
    /// Size of the body in bytes.
    pub(crate) size: Option<i64>,
    /// SHA-256 in hexadecimal digits; empty if the client has sent none.
    pub(crate) sha256: String,
}

impl Announced {
    /// Reads the headers of a request. Fails if they have the digest of a form, which is not that of the file.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let size = headers.get(CONTENT_LENGTH).and_then(|size| size.to_str().ok()?.parse().ok());
        let sha256 = digest(headers)?;
        if sha256.is_some() && is_form(headers) {
            let problem = "is not checked for a form: send the file as the body itself";
            return Err(Problem::invalid("digest", problem));
        }
        Ok(Self { size, sha256: sha256.unwrap_or_default() })
    }
}

/// Fails if headers have the digest of a body, which only [`Announced::of`] reads, or the digest of a file although
/// `is_beginning` is not set: an upload has announced it when it began.
pub(crate) fn refuse_digests(headers: &HeaderMap, is_beginning: bool) -> Result<(), Problem> {
    let [of_file, of_body] = DIGESTS;
    let is_there = |name: &HeaderName| headers.contains_key(name);
    if is_there(&DIGEST) || is_there(&of_body) || !is_beginning && is_there(&of_file) {
        let problem = "is not checked here: send that of the file in Repr-Digest when the upload begins, and that of a \
                       body in Upload-Checksum";
        return Err(Problem::invalid("digest", problem));
    }
    Ok(())
}

/// Whether a body is a form with files.
pub(crate) fn is_form(headers: &HeaderMap) -> bool {
    media_type(headers).as_deref() == Some("multipart/form-data")
}

/// Returns the SHA-256 that a client has sent, in hexadecimal digits. Digests by other algorithms are ignored.
fn digest(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let values = |name: &HeaderName| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).map(str::trim).collect::<Vec<_>>()
    };
    let plain = values(&DIGEST).into_iter().filter_map(of_sha256);
    let enclosed = DIGESTS;
    let enclosed = enclosed.iter().flat_map(&values).filter_map(of_sha256);
    let enclosed = enclosed.map(|value| {
        let value = value.split(';').next().unwrap_or_default().trim();
        value.strip_prefix(':').and_then(|value| value.strip_suffix(':')).unwrap_or("-")
    });
    let mut found = None;
    for value in plain.chain(enclosed) {
        let bytes = BASE64_STANDARD.decode(value).ok().filter(|bytes| bytes.len() == 32);
        let invalid = || Problem::invalid("digest", "must be a SHA-256 in base64");
        let bytes = bytes.ok_or_else(invalid)?;
        let hash = hex(&bytes);
        if found.as_ref().is_some_and(|found| *found != hash) {
            return Err(Problem::invalid("digest", "must be the same in all headers"));
        }
        found = Some(hash);
    }
    Ok(found)
}

/// Returns the value of a digest by SHA-256.
fn of_sha256(digest: &str) -> Option<&str> {
    let (name, value) = digest.split_once('=')?;
    name.trim().eq_ignore_ascii_case("sha-256").then_some(value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SHA-256 of nothing.
    const BASE64: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn of(pairs: &[(HeaderName, String)]) -> Result<Option<String>, Problem> {
        let pairs = pairs.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
        digest(&pairs.collect())
    }

    #[test]
    fn the_sha256_is_found_in_all_headers_for_digests() {
        let [repr, content] = DIGESTS;
        for (name, value) in [
            (DIGEST, format!("SHA-256={BASE64}")),
            (DIGEST, format!("md5=abc,sha-256={BASE64}")),
            (repr.clone(), format!("sha-256=:{BASE64}:")),
            (repr, format!("sha-512=:AAAA:, sha-256=:{BASE64}:")),
            (content, format!("sha-256=:{BASE64}:;a=b")),
        ] {
            let found = of(&[(name, value.clone())]);
            assert_eq!(found.unwrap().as_deref(), Some(HEX), "{value}");
        }
        assert_eq!(of(&[(DIGEST, "md5=abc".to_owned())]).unwrap(), None);
        assert_eq!(of(&[]).unwrap(), None);
    }

    #[test]
    fn digests_that_nobody_checks_are_rejected() {
        let [repr, content] = DIGESTS;
        let refused = |name: HeaderName, is_beginning| {
            let headers = [(name, "sha-256=:AA==:".parse().unwrap())].into_iter().collect();
            refuse_digests(&headers, is_beginning).is_err()
        };
        assert!(!refused(repr.clone(), true) && refused(repr, false));
        for name in [content, DIGEST] {
            assert!(refused(name.clone(), true) && refused(name, false));
        }
        assert!(refuse_digests(&HeaderMap::new(), false).is_ok());
    }

    #[test]
    fn a_broken_or_contradictory_digest_is_rejected() {
        let [repr, _] = DIGESTS;
        let zeros = BASE64_STANDARD.encode([0; 32]);
        assert!(of(&[(DIGEST, "sha-256=abc".to_owned())]).is_err());
        assert!(of(&[(repr.clone(), format!("sha-256={BASE64}"))]).is_err(), "without colons");
        let two = [(DIGEST, format!("sha-256={BASE64}")), (repr, format!("sha-256=:{zeros}:"))];
        assert!(of(&two).is_err());
    }
}
