//! The public keys that tokens are verified with.

use std::{collections::HashMap, time::Duration};

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
    /// When somebody last tried to read them; never where nobody does.
    read_at: Option<Instant>,
}

impl Keys {
    /// Takes these keys, and no other ones.
    pub(crate) fn learn(&self, jwks: &str) -> anyhow::Result<()> {
        let by_id = read(jwks)?;
        self.known.send_modify(|known| known.by_id = by_id);
        Ok(())
    }

    /// Tells those who wait that the keys are now as they are.
    pub(crate) fn were_read(&self) {
        self.known.send_modify(|known| known.read_at = Some(Instant::now()));
    }

    /// Resolves when the keys should be read again.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// The key that a token says it was signed with. One that was made just now is waited for.
    pub(crate) async fn of_token(&self, token: &str) -> Option<DecodingKey> {
        let id = decode_header(token).ok()?.kid.filter(|id| is_id(id))?;
        let mut known = self.known.subscribe();
        let asked_at = Instant::now();
        {
            let known = known.borrow();
            if let Some(key) = known.by_id.get(&id) {
                return Some(key.clone());
            }
            if known.read_at?.elapsed() < FRESH {
                return None;
            }
        }
        self.wanted.notify_one();
        let read = known.wait_for(|known| known.read_at.is_some_and(|time| time > asked_at));
        timeout(PATIENCE, read).await.ok()?.ok()?.by_id.get(&id).cloned()
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
