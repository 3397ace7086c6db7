//! Checksums of single requests.

use assay_proto::{Fault, catalog::UploadChecksum};
use aws_lc_rs::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};

/// The checksum that a body must have, and that of what has arrived of it.
pub(super) struct Checksum {
    expected: Vec<u8>,
    context: Context,
}

impl Checksum {
    /// Fails for an unknown algorithm, or a value that cannot be one of it.
    pub(super) fn of(checksum: &UploadChecksum) -> Result<Self, Fault> {
        let algorithm: &Algorithm = match checksum.algorithm.as_str() {
            "sha1" => &SHA1_FOR_LEGACY_USE_ONLY,
            "sha256" => &SHA256,
            _ => {
                let problem = "Upload-Checksum: the algorithm must be sha1 or sha256";
                return Err(Fault::Malformed(problem.to_owned()));
            }
        };
        if checksum.value.len() != algorithm.output_len() {
            let problem = "Upload-Checksum: the value has the wrong length for its algorithm";
            return Err(Fault::Malformed(problem.to_owned()));
        }
        Ok(Self { expected: checksum.value.to_vec(), context: Context::new(algorithm) })
    }

    /// Adds the next bytes of the body.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
    }

    /// Fails if the body has another checksum.
    pub(super) fn check(self) -> Result<(), Fault> {
        if self.context.finish().as_ref() == self.expected {
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

    fn checked(algorithm: &str, value: Vec<u8>, body: &[u8]) -> Result<(), Fault> {
        let checksum = UploadChecksum { algorithm: algorithm.to_owned(), value: value.into() };
        let mut checksum = Checksum::of(&checksum)?;
        body.chunks(2).for_each(|bytes| checksum.add(bytes));
        checksum.check()
    }

    #[test]
    fn a_body_must_have_the_checksum_that_the_client_has_sent() {
        // From FIPS 180-1.
        let sha1 = [
            0xa9, 0x99, 0x3e, 0x36, 0x47, 0x06, 0x81, 0x6a, 0xba, 0x3e, 0x25, 0x71, 0x78, 0x50,
            0xc2, 0x6c, 0x9c, 0xd0, 0xd8, 0x9d,
        ];
        assert!(checked("sha1", sha1.to_vec(), b"abc").is_ok());
        let mismatch = checked("sha1", sha1.to_vec(), b"abd");
        assert!(matches!(mismatch, Err(Fault::Refused { code: "checksum_mismatch", .. })));
        assert!(matches!(checked("sha256", vec![0; 32], b"abc"), Err(Fault::Refused { .. })));
        for (algorithm, length) in [("md5", 16), ("sha1", 32), ("sha256", 20), ("", 0)] {
            let wrong = checked(algorithm, vec![0; length], b"abc");
            assert!(matches!(wrong, Err(Fault::Malformed(_))), "{algorithm} {length}");
        }
    }
}
