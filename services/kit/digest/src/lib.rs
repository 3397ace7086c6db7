//! Forms of digests: hexadecimal digits, as records have them, and base64, as headers have them.

use std::fmt::Write as _;

use base64::{Engine, prelude::BASE64_STANDARD};

/// Returns bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Returns the value of `Repr-Digest` (RFC 9530) for a SHA-256 in hexadecimal digits.
pub fn repr_digest(sha256: &str) -> String {
    let byte = |index: usize| u8::from_str_radix(sha256.get(index..index + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..sha256.len()).step_by(2).filter_map(byte).collect();
    format!("sha-256=:{}:", BASE64_STANDARD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_is_sent_in_base64() {
        let expected = "sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:";
        assert_eq!(repr_digest(EMPTY), expected);
    }

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hex(&[0, 1, 0xab, 0xff]), "0001abff");
    }
}
