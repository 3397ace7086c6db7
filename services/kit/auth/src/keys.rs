//! The public keys that tokens are verified with.

use std::{collections::HashMap, time::Duration};

use assay_proto::Fault;
use jsonwebtoken::{DecodingKey, decode_header, jwk::JwkSet};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout},
};

/// How long a token with an unknown key waits for the keys to be read again.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long keys count as just read: a key that is not among them then does not exist, so that
/// made-up keys neither wait nor cause work.
pub(crate) const FRESH: Duration = Duration::from_secs(1);

/// What a key's id may have at most; ours have 43 characters.
const LONGEST_ID: usize = 64;

#[derive(Default)]
pub(crate) struct Keys {
    known: watch::Sender<Known>,
    wanted: Notify,
}

#[derive(Default)]
struct Known {
    by_id: HashMap<String, DecodingKey>,
    /// Whether these are all keys there were at the last attempt to read them.
    complete: bool,
    /// The last attempt to read them; none for keys that are fixed.
    read_at: Option<Instant>,
}

impl Known {
    /// Returns the key with this id. Without it, the token is invalid if all keys are known;
    /// otherwise nobody can say.
    fn key(&self, id: &str) -> Result<DecodingKey, Fault> {
        match self.by_id.get(id) {
            Some(key) => Ok(key.clone()),
            None if self.complete => Err(Fault::Unauthenticated),
            None => Err(IDENTITY_AWAY),
        }
    }
}

/// The fault of a token that may be valid.
pub(crate) const IDENTITY_AWAY: Fault = Fault::Unavailable("the identity service");

impl Keys {
    /// Takes these keys, and no other ones.
    pub(crate) fn learn(&self, jwks: &str) -> anyhow::Result<()> {
        let by_id = read(jwks)?;
        self.known.send_modify(|known| {
            known.by_id = by_id;
            known.complete = true;
        });
        Ok(())
    }

    /// Ends the wait for an attempt to read the keys: [`Keys::learn`] has taken them, or it failed.
    pub(crate) fn were_read(&self, complete: bool) {
        self.known.send_modify(|known| {
            known.complete = complete;
            known.read_at = Some(Instant::now());
        });
    }

    /// Resolves when the keys should be read again.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Returns the key that a token says it was signed with. A key that is unknown is read from
    /// identity, unless that was tried a moment ago. Fails with [`Fault::Unavailable`] if identity
    /// could not be asked.
    pub(crate) async fn of_token(&self, token: &str) -> Result<DecodingKey, Fault> {
        let id = decode_header(token).ok().and_then(|header| header.kid).filter(|id| is_id(id));
        let id = id.ok_or(Fault::Unauthenticated)?;
        let mut known = self.known.subscribe();
        let asked_at = Instant::now();
        {
            let known = known.borrow();
            let was_just_read = known.read_at.is_none_or(|time| time.elapsed() < FRESH);
            if was_just_read || known.by_id.contains_key(&id) {
                return known.key(&id);
            }
        }
        self.wanted.notify_one();
        let read = known.wait_for(|known| known.read_at.is_some_and(|time| time > asked_at));
        match timeout(PATIENCE, read).await {
            Ok(Ok(known)) => known.key(&id),
            _ => Err(IDENTITY_AWAY),
        }
    }
}

/// Whether an id could be one of ours, which are base64url.
fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(fits)
}

fn read(jwks: &str) -> anyhow::Result<HashMap<String, DecodingKey>> {
    let keys: JwkSet = serde_json::from_str(jwks)?;
    let named = keys.keys.iter().filter_map(|key| Some((key.common.key_id.clone()?, key)));
    named.map(|(id, key)| Ok((id, DecodingKey::from_jwk(key)?))).collect()
}
