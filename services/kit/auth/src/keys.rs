//! The public keys for verifying tokens.

use std::{collections::HashMap, time::Duration};

use assay_proto::Fault;
use jsonwebtoken::{DecodingKey, decode_header, jwk::JwkSet};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

/// Maximum time that a token with an unknown key waits for the keys to be read again.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Time after a read in which an unknown key is rejected at once, so that forged key ids neither
/// wait nor cause reads.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// Maximum length of a key id. Those of Assay have 43 characters.
const LONGEST_ID: usize = 64;

#[derive(Default)]
pub(crate) struct Keys {
    known: watch::Sender<Known>,
    read_requested: Notify,
}

#[derive(Default)]
struct Known {
    by_id: HashMap<String, DecodingKey>,
    /// Whether the last attempt to read the keys succeeded.
    complete: bool,
    /// Time of the last attempt to read the keys; none for fixed keys.
    read_at: Option<Instant>,
}

impl Known {
    /// Returns the key with this id. If it is unknown, the token is invalid if the keys are
    /// complete, and may be valid otherwise.
    fn key(&self, id: &str) -> Result<DecodingKey, Fault> {
        match self.by_id.get(id) {
            Some(key) => Ok(key.clone()),
            None if self.complete => Err(Fault::Unauthenticated),
            None => Err(IDENTITY_UNAVAILABLE),
        }
    }
}

/// The fault of a token that may be valid.
pub(crate) const IDENTITY_UNAVAILABLE: Fault = Fault::Unavailable("the identity service");

impl Keys {
    /// Replaces the keys with those of a JSON Web Key Set.
    pub(crate) fn replace(&self, jwks: &str) -> anyhow::Result<()> {
        let by_id = read(jwks)?;
        self.known.send_modify(|known| {
            known.by_id = by_id;
            known.complete = true;
        });
        Ok(())
    }

    /// Records an attempt to read the keys, and wakes tokens that wait for it. `complete` is false
    /// if it failed.
    pub(crate) fn record_read(&self, complete: bool) {
        self.known.send_modify(|known| {
            known.complete = complete;
            known.read_at = Some(Instant::now());
        });
    }

    /// Resolves when the keys should be read again.
    pub(crate) async fn read_requested(&self) {
        self.read_requested.notified().await;
    }

    /// Returns the key that a token names. If it is unknown, the keys are read again, unless that
    /// was tried within [`FRESH`]. Fails with [`Fault::Unavailable`] if they cannot be read.
    pub(crate) async fn of_token(&self, token: &str) -> Result<DecodingKey, Fault> {
        let id = decode_header(token).ok().and_then(|header| header.kid).filter(|id| is_id(id));
        let id = id.ok_or(Fault::Unauthenticated)?;
        let mut known = self.known.subscribe();
        let requested_at = Instant::now();
        {
            let known = known.borrow();
            let was_just_read = known.read_at.is_none_or(|time| time.elapsed() < FRESH);
            if was_just_read || known.by_id.contains_key(&id) {
                return known.key(&id);
            }
        }
        self.read_requested.notify_one();
        let read = known.wait_for(|known| known.read_at.is_some_and(|time| time > requested_at));
        match timeout(TIMEOUT, read).await {
            Ok(Ok(known)) => known.key(&id),
            _ => Err(IDENTITY_UNAVAILABLE),
        }
    }
}

/// Returns whether an id has the form of a key id of Assay, which is base64url.
fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(fits)
}

fn read(jwks: &str) -> anyhow::Result<HashMap<String, DecodingKey>> {
    let keys: JwkSet = serde_json::from_str(jwks)?;
    let named = keys.keys.iter().filter_map(|key| Some((key.common.key_id.clone()?, key)));
    named.map(|(id, key)| Ok((id, DecodingKey::from_jwk(key)?))).collect()
}
