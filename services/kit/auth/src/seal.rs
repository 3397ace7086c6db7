//! Encryption of secrets at rest: AES-256-GCM, bound to the record of the secret.

use std::{collections::HashMap, sync::Arc};

use assay_proto::Fault;
use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    rand,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret, SecretString};

/// Keys for encrypting secrets.
#[derive(clap::Args, Clone, Debug)]
pub struct SealConfig {
    /// Keys for encrypting stored secrets, as `id:key,id:key` with 32 bytes in base64 per key. The
    /// first key encrypts, all keys decrypt
    #[arg(long, env = "ASSAY_ENCRYPTION_KEYS", hide_env_values = true)]
    pub encryption_keys: SecretString,
}

impl SealConfig {
    /// Returns the keys with their ids, in order.
    pub(crate) fn keys(&self) -> anyhow::Result<Vec<(String, [u8; 32])>> {
        let key = |entry: &str| {
            let (id, key) = entry.trim().split_once(':')?;
            let key = BASE64_STANDARD.decode(key).ok()?.try_into().ok()?;
            (!id.is_empty() && !id.contains('.')).then(|| (id.to_owned(), key))
        };
        let keys: Option<_> = self.encryption_keys.expose_secret().split(',').map(key).collect();
        keys.ok_or_else(|| {
            anyhow::anyhow!(
                "ASSAY_ENCRYPTION_KEYS: must be id:key,id:key with 32 bytes in base64 per key"
            )
        })
    }

    /// Returns the id of the key that encrypts.
    pub(crate) fn current(&self) -> anyhow::Result<String> {
        let first = self.keys()?.into_iter().next();
        first
            .map(|(id, _)| id)
            .ok_or_else(|| anyhow::anyhow!("ASSAY_ENCRYPTION_KEYS: must not be empty"))
    }
}

/// Generates a key for [`SealConfig`], with its id.
pub fn new_seal_key(id: &str) -> anyhow::Result<SecretString> {
    let mut key = [0; 32];
    rand::fill(&mut key)?;
    Ok(format!("{id}:{}", BASE64_STANDARD.encode(key)).into())
}

/// Encrypts and decrypts secrets.
#[derive(Clone)]
pub struct Seal(Arc<Inner>);

struct Inner {
    current: String,
    keys: HashMap<String, RandomizedNonceKey>,
}

impl Seal {
    pub fn new(config: &SealConfig) -> anyhow::Result<Self> {
        let mut keys = HashMap::new();
        for (id, key) in config.keys()? {
            let key = RandomizedNonceKey::new(&AES_256_GCM, &key)?;
            keys.insert(id, key);
        }
        Ok(Self(Arc::new(Inner { current: config.current()?, keys })))
    }

    /// Encrypts `secret`. It can only be decrypted with the same `owner`, which names the record
    /// and field of the secret, so that a stored secret is useless in another record.
    pub fn close(&self, owner: &str, secret: &[u8]) -> Result<String, Fault> {
        let key = &self.0.keys[&self.0.current];
        let mut sealed = secret.to_vec();
        let nonce = key
            .seal_in_place_append_tag(Aad::from(owner), &mut sealed)
            .map_err(|_| Fault::internal("cannot encrypt a secret"))?;
        let mut text = nonce.as_ref().to_vec();
        text.append(&mut sealed);
        Ok(format!("{}.{}", self.0.current, BASE64_STANDARD.encode(text)))
    }

    /// Decrypts a secret that [`Seal::close`] encrypted.
    pub fn open(&self, owner: &str, sealed: &str) -> Result<Vec<u8>, Fault> {
        self.try_open(owner, sealed)
            .ok_or_else(|| Fault::internal(format!("cannot decrypt the secret of {owner}")))
    }

    /// Encrypts a secret again with the current key; returns `None` if it already is.
    pub fn reseal(&self, owner: &str, sealed: &str) -> Result<Option<String>, Fault> {
        if sealed.split_once('.').is_some_and(|(id, _)| id == self.0.current) {
            return Ok(None);
        }
        self.close(owner, &self.open(owner, sealed)?).map(Some)
    }

    fn try_open(&self, owner: &str, sealed: &str) -> Option<Vec<u8>> {
        let (id, text) = sealed.split_once('.')?;
        let mut text = BASE64_STANDARD.decode(text).ok()?;
        let (nonce, secret) = text.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let secret = self.0.keys.get(id)?.open_in_place(nonce, Aad::from(owner), secret).ok()?;
        Some(secret.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal(keys: &str) -> Seal {
        Seal::new(&SealConfig { encryption_keys: keys.into() }).unwrap()
    }

    fn key(id: &str) -> String {
        new_seal_key(id).unwrap().expose_secret().to_owned()
    }

    #[test]
    fn a_secret_can_only_be_decrypted_for_its_owner() {
        let seal = seal(&key("a"));
        let sealed = seal.close("environment/1/Password", b"canary").unwrap();
        assert!(!sealed.contains("canary"));
        assert_eq!(seal.open("environment/1/Password", &sealed).unwrap(), b"canary");
        assert!(seal.open("environment/2/Password", &sealed).is_err());
    }

    #[test]
    fn old_keys_decrypt_and_the_first_key_encrypts() {
        let (old, new) = (key("old"), key("new"));
        let sealed = seal(&old).close("x", b"canary").unwrap();
        let both = seal(&format!("{new},{old}"));
        assert_eq!(both.open("x", &sealed).unwrap(), b"canary");
        assert!(both.close("x", b"canary").unwrap().starts_with("new."));
        assert!(seal(&new).open("x", &sealed).is_err());

        let resealed = both.reseal("x", &sealed).unwrap().expect("the old key encrypted it");
        assert_eq!(seal(&new).open("x", &resealed).unwrap(), b"canary");
        assert_eq!(both.reseal("x", &resealed).unwrap(), None);
        assert!(both.reseal("y", &sealed).is_err());
    }

    #[test]
    fn malformed_keys_are_rejected() {
        for wrong in ["", "a", "a:", "a:AAAA", ":AAAA", &key("a.b")] {
            let config = SealConfig { encryption_keys: wrong.into() };
            assert!(Seal::new(&config).is_err(), "{wrong:?} was accepted");
        }
    }
}
