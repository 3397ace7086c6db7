//! The identity of a failure.

use std::{fmt, str::FromStr};

use aws_lc_rs::digest::{self, SHA256};

use crate::VERSION;

/// Identity of a failure: the first 128 bits of the SHA-256 digest of the version of the rules and
/// of the normalized text. It is written as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 16]);

/// A text or bytes are not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint has 32 hexadecimal digits, which are 16 bytes")]
pub struct InvalidFingerprint;

impl Fingerprint {
    /// Returns the fingerprint of a normalized text.
    pub(crate) fn of(normalized: &str) -> Self {
        let mut context = digest::Context::new(&SHA256);
        context.update(&VERSION.to_be_bytes());
        context.update(normalized.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&context.finish().as_ref()[..16]);
        Self(bytes)
    }

    /// Returns the 16 bytes, as they are stored.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl From<[u8; 16]> for Fingerprint {
    fn from(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl TryFrom<&[u8]> for Fingerprint {
    type Error = InvalidFingerprint;

    fn try_from(bytes: &[u8]) -> Result<Self, Self::Error> {
        bytes.try_into().map(Self).map_err(|_| InvalidFingerprint)
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(digits: &str) -> Result<Self, Self::Err> {
        let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let value = u128::from_str_radix(digits, 16).ok().filter(|_| is_hex);
        value.map(|value| Self(value.to_be_bytes())).ok_or(InvalidFingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::{Fingerprint, InvalidFingerprint};

    #[test]
    fn a_fingerprint_is_read_as_it_is_written() {
        let fingerprint = Fingerprint::of("KeyError: 'sku'");
        assert_eq!(fingerprint.to_string().len(), 32);
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert_eq!(Fingerprint::try_from(fingerprint.as_bytes().as_slice()), Ok(fingerprint));
        assert_eq!(Fingerprint::from([0; 16]).to_string(), "0".repeat(32));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "12", &"g".repeat(32), &"0".repeat(33), &format!("+{}", "0".repeat(31))] {
            assert_eq!(text.parse::<Fingerprint>(), Err(InvalidFingerprint), "{text}");
        }
        assert_eq!(Fingerprint::try_from([0; 15].as_slice()), Err(InvalidFingerprint));
    }
}
