//! Random secrets that are stored as hashes, such as those of API tokens and links.

use assay_proto::Fault;
use aws_lc_rs::{
    digest::{SHA256, digest},
    rand,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use secrecy::SecretString;

/// Generates a secret of 256 random bits, in characters that are safe in a URL, and its hash.
pub fn new_secret(prefix: &str) -> Result<(SecretString, Vec<u8>), Fault> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| Fault::internal("no source of random numbers"))?;
    let secret = format!("{prefix}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes));
    let hash = hash_of_secret(&secret);
    Ok((secret.into(), hash))
}

/// Returns the stored hash of a secret. It needs no salt, because nobody can guess the secret.
pub fn hash_of_secret(secret: &str) -> Vec<u8> {
    digest(&SHA256, secret.as_bytes()).as_ref().to_vec()
}
