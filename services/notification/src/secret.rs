//! Secrets of webhooks and the signatures made with them, as specified by Standard Webhooks:
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.

use assay_auth::Seal;
use assay_proto::{Fault, WebhookId, notification::WebhookHeader};
use aws_lc_rs::{hmac, rand};
use base64::{Engine, prelude::BASE64_STANDARD};

/// Placeholder shown for a secret. A client that sends it back keeps the secret.
pub(crate) const MASK: &str = "********";

const PREFIX: &str = "whsec_";

/// Allowed lengths of a key, in bytes.
const KEY_LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// Length of a generated key, in bytes.
const GENERATED_LENGTH: usize = 32;

/// Generates a secret.
pub(crate) fn generate() -> Result<String, Fault> {
    let mut key = [0; GENERATED_LENGTH];
    rand::fill(&mut key).map_err(|_| Fault::internal("the system has no random numbers"))?;
    Ok(format!("{PREFIX}{}", BASE64_STANDARD.encode(key)))
}

/// Returns the rule that a secret violates, if any.
pub(crate) fn problem(secret: &str) -> Option<String> {
    let (least, most) = (KEY_LENGTHS.start(), KEY_LENGTHS.end());
    let problem = || format!("must be {PREFIX} followed by {least} to {most} bytes in base64");
    key(secret).is_none_or(|key| !KEY_LENGTHS.contains(&key.len())).then(problem)
}

fn key(secret: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()
}

/// Encrypts a secret for storage.
pub(crate) fn close(seal: &Seal, webhook: WebhookId, secret: &str) -> Result<String, Fault> {
    seal.close(&owner(webhook), secret.as_bytes())
}

/// Encrypts a stored secret with the current key, unless it already is.
pub(crate) fn reseal(
    seal: &Seal,
    webhook: WebhookId,
    sealed: &str,
) -> Result<Option<String>, Fault> {
    seal.reseal(&owner(webhook), sealed)
}

fn owner(webhook: WebhookId) -> String {
    format!("webhook/{webhook}/Secret")
}

/// Encrypts the headers of a webhook for storage.
pub(crate) fn close_headers(
    seal: &Seal,
    webhook: WebhookId,
    headers: &[WebhookHeader],
) -> Result<Option<String>, Fault> {
    if headers.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_vec(headers).map_err(Fault::internal)?;
    seal.close(&owner_of_headers(webhook), &text).map(Some)
}

/// Decrypts the stored headers of a webhook.
pub(crate) fn open_headers(
    seal: &Seal,
    webhook: WebhookId,
    sealed: Option<&str>,
) -> Result<Vec<WebhookHeader>, Fault> {
    let Some(sealed) = sealed else { return Ok(Vec::new()) };
    let text = seal.open(&owner_of_headers(webhook), sealed)?;
    serde_json::from_slice(&text).map_err(Fault::internal)
}

/// Encrypts stored headers with the current key, unless they already are.
pub(crate) fn reseal_headers(
    seal: &Seal,
    webhook: WebhookId,
    sealed: &str,
) -> Result<Option<String>, Fault> {
    seal.reseal(&owner_of_headers(webhook), sealed)
}

fn owner_of_headers(webhook: WebhookId) -> String {
    format!("webhook/{webhook}/Headers")
}

/// The stored secrets of a webhook, encrypted.
#[derive(Clone)]
pub(crate) struct Sealed {
    /// Secrets; the messages are signed with each of them.
    pub(crate) secrets: Vec<String>,
    pub(crate) headers: Option<String>,
}

/// Signs the messages of one webhook.
pub(crate) struct Signer(Vec<hmac::Key>);

impl Signer {
    /// Decrypts stored secrets. Messages are signed with each of them.
    pub(crate) fn open<'a>(
        seal: &Seal,
        webhook: WebhookId,
        sealed: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Fault> {
        let keys = sealed.into_iter().map(|sealed| {
            let secret = seal.open(&owner(webhook), sealed)?;
            let key = str::from_utf8(&secret).ok().and_then(key);
            let key = key.ok_or_else(|| Fault::internal("a stored webhook secret is malformed"))?;
            Ok(hmac::Key::new(hmac::HMAC_SHA256, &key))
        });
        keys.collect::<Result<_, Fault>>().map(Self)
    }

    /// Returns the header `webhook-signature` of a message. `timestamp` is in seconds since 1970.
    pub(crate) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let content = [format!("{id}.{timestamp}.").as_bytes(), body].concat();
        let signatures = self
            .0
            .iter()
            .map(|key| format!("v1,{}", BASE64_STANDARD.encode(hmac::sign(key, &content))));
        signatures.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use assay_auth::{SealConfig, new_seal_key};

    use super::*;

    fn seal() -> Seal {
        Seal::new(&SealConfig { encryption_keys: new_seal_key("1").unwrap() }).unwrap()
    }

    /// Compares with the example of the reference implementations.
    #[test]
    fn signatures_match_the_reference_implementations() {
        let (seal, webhook) = (seal(), WebhookId::new());
        let secret = close(&seal, webhook, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signer = Signer::open(&seal, webhook, [secret.as_str()]).unwrap();
        let body = br#"{"test": 2432232314}"#;
        assert_eq!(
            signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn each_secret_adds_a_signature() {
        let (seal, webhook) = (seal(), WebhookId::new());
        let secrets = [(); 2].map(|()| close(&seal, webhook, &generate().unwrap()).unwrap());
        let both = Signer::open(&seal, webhook, secrets.each_ref().map(String::as_str)).unwrap();
        let each = secrets.each_ref().map(|secret| {
            Signer::open(&seal, webhook, [secret.as_str()]).unwrap().sign("1", 2, b"{}")
        });
        assert_eq!(both.sign("1", 2, b"{}"), each.join(" "));
    }

    #[test]
    fn secrets_have_a_prefix_and_24_to_64_bytes() {
        assert_eq!(problem(&generate().unwrap()), None);
        let of = |length| format!("whsec_{}", BASE64_STANDARD.encode(vec![7; length]));
        assert_eq!(problem(&of(24)), None);
        assert_eq!(problem(&of(64)), None);
        for wrong in ["", "whsec_", "whsec_!", "secret", &of(23), &of(65)] {
            assert!(problem(wrong).is_some(), "{wrong} was accepted");
        }
    }
}
