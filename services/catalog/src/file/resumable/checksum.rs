//! Checksums of single requests.

use assay_digest::hex;
use assay_proto::{Fault, catalog::AppendUploadTarget};
use aws_lc_rs::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// The checksum that a body must have, and that of what has arrived of it.
pub(super) struct Checksum {
    /// In hexadecimal digits.
    expected: String,
    context: Context,
}

impl Checksum {
    /// Returns the checksum that a client has sent, if it has. Fails for an unknown algorithm, or a value that cannot
    /// be one of it.
    pub(super) fn of(target: &AppendUploadTarget) -> Result<Option<Self>, Fault> {
        let algorithm: &'static Algorithm = match target.checksum_algorithm.as_str() {
            "" => return Ok(None),
            "sha1" => &SHA1_FOR_LEGACY_USE_ONLY,
            "sha256" => &SHA256,
            _ => {
                let problem = "Upload-Checksum: the algorithm must be sha1 or sha256";
                return Err(Fault::Malformed(problem.to_owned()));
            }
        };
        if target.checksum.len() != 2 * algorithm.output_len() {
            let problem = "Upload-Checksum: the value has the wrong length for its algorithm";
            return Err(Fault::Malformed(problem.to_owned()));
        }
        let expected = target.checksum.to_ascii_lowercase();
        Ok(Some(Self { expected, context: Context::new(algorithm) }))
    }

    /// Adds the next bytes of the body.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// Fails if the body has another checksum.
    pub(super) fn check(self) -> Result<(), Fault> {
        if hex(self.context.finish().as_ref()) == self.expected {
            return Ok(());
        }
        let reason =
            "Upload-Checksum: the body has another checksum, and is not stored: send it again";
        Err(Fault::Refused { code: "checksum_mismatch", reason: reason.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(algorithm: &str, checksum: &str, body: &[u8]) -> Result<(), Fault> {
        let target = AppendUploadTarget {
            checksum_algorithm: algorithm.to_owned(),
            checksum: checksum.to_owned(),
            ..AppendUploadTarget::default()
        };
        let Some(mut checksum) = Checksum::of(&target)? else { return Ok(()) };
        body.chunks(2).for_each(|bytes| checksum.add(bytes));
        checksum.check()
    }

    #[test]
    fn a_body_must_have_the_checksum_that_the_client_has_sent() {
        // From FIPS 180-1.
        let sha1 = "A9993E364706816ABA3E25717850C26C9CD0D89D";
        assert!(checked("sha1", sha1, b"abc").is_ok());
        assert!(checked("", "", b"abc").is_ok());
        let mismatch = checked("sha1", sha1, b"abd");
        assert!(matches!(mismatch, Err(Fault::Refused { code: "checksum_mismatch", .. })));
        assert!(matches!(checked("sha256", &"0".repeat(64), b"abc"), Err(Fault::Refused { .. })));
        for (algorithm, digits) in [("md5", 32), ("sha1", 64), ("sha256", 40), ("sha1", 0)] {
            let wrong = checked(algorithm, &"0".repeat(digits), b"abc");
            assert!(matches!(wrong, Err(Fault::Malformed(_))), "{algorithm} {digits}");
        }
    }
}
