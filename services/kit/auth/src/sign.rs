//! Signatures of this installation, such as those of links that grant access.

use std::sync::Arc;

use aws_lc_rs::hmac;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

use crate::SealConfig;

/// Signs texts and verifies the signatures. Its keys are derived from those for encrypting secrets,
/// separately for each purpose, so that a signature is useless for another one.
#[derive(Clone)]
pub struct Signer(Arc<Inner>);

struct Inner {
    current: (String, hmac::Key),
    all: Vec<(String, hmac::Key)>,
}

impl Signer {
    pub fn new(config: &SealConfig, purpose: &str) -> anyhow::Result<Self> {
        let derived = |(id, key): (String, [u8; 32])| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
            let key = hmac::sign(&key, format!("assay signatures: {purpose}").as_bytes());
            (id, hmac::Key::new(hmac::HMAC_SHA256, key.as_ref()))
        };
        let all: Vec<_> = config.keys()?.into_iter().map(derived).collect();
        let current = all.first().cloned();
        let current =
            current.ok_or_else(|| anyhow::anyhow!("ASSAY_ENCRYPTION_KEYS: must not be empty"))?;
        Ok(Self(Arc::new(Inner { current, all })))
    }

    /// Returns the signature of a text, in characters that are safe in a URL.
    pub fn sign(&self, text: &str) -> String {
        let (id, key) = &self.0.current;
        let signature = hmac::sign(key, text.as_bytes());
        format!("{id}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// Returns whether a signature of a text is valid, with any of the keys.
    pub fn verify(&self, text: &str, signature: &str) -> bool {
        let Some((id, signature)) = signature.split_once('.') else { return false };
        let Ok(signature) = BASE64_URL_SAFE_NO_PAD.decode(signature) else { return false };
        let mut keys = self.0.all.iter().filter(|(known, _)| known == id);
        keys.any(|(_, key)| hmac::verify(key, text.as_bytes(), &signature).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::new_seal_key;

    fn config(keys: &str) -> SealConfig {
        SealConfig { encryption_keys: keys.into() }
    }

    #[test]
    fn signatures_are_bound_to_text_purpose_and_key() {
        let keys = new_seal_key("1").unwrap();
        let signer = Signer::new(&config(keys.expose_secret()), "links").unwrap();
        let signature = signer.sign("a");
        assert!(signer.verify("a", &signature));
        let other = Signer::new(&config(keys.expose_secret()), "mails").unwrap();
        let stranger =
            Signer::new(&SealConfig { encryption_keys: new_seal_key("1").unwrap() }, "links");
        assert!(!signer.verify("b", &signature));
        assert!(!other.verify("a", &signature), "another purpose");
        assert!(!stranger.unwrap().verify("a", &signature), "another key");
        for wrong in ["", ".", "1.", &signature[1..], &signature[..signature.len() - 1]] {
            assert!(!signer.verify("a", wrong), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn old_keys_verify_and_the_first_key_signs() {
        let (old, new) = (new_seal_key("old").unwrap(), new_seal_key("new").unwrap());
        let (old, new) = (old.expose_secret(), new.expose_secret());
        let signature = Signer::new(&config(old), "links").unwrap().sign("a");
        let both = Signer::new(&config(&format!("{new},{old}")), "links").unwrap();
        assert!(both.verify("a", &signature));
        assert!(both.sign("a").starts_with("new."));
    }
}
