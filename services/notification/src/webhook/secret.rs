//! What deliveries are signed with, as Standard Webhooks describes it:
//! <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.

use assay_auth::Seal;
use assay_proto::{Fault, WebhookId};
use aws_lc_rs::{hmac, rand};
use base64::{Engine, prelude::BASE64_STANDARD};

/// What a secret begins with.
const PREFIX: &str = "whsec_";

/// How many bytes a key may have.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// How many bytes a key has that we make.
const LENGTH: usize = 32;

/// A new secret.
pub(crate) fn generate() -> Result<String, Fault> {
    let mut key = [0; LENGTH];
    rand::fill(&mut key).map_err(|_| Fault::internal("no random numbers"))?;
    Ok(format!("{PREFIX}{}", BASE64_STANDARD.encode(key)))
}

/// What is wrong with a secret, if anything is.
pub(super) fn problem(secret: &str) -> Option<String> {
    let (least, most) = (LENGTHS.start(), LENGTHS.end());
    let problem = || format!("must be {PREFIX} and {least} to {most} bytes in base64");
    key(secret).is_none_or(|key| !LENGTHS.contains(&key.len())).then(problem)
}

fn key(secret: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()
}

/// A secret as it is stored.
pub(crate) fn close(seal: &Seal, webhook: WebhookId, secret: &str) -> Result<String, Fault> {
    seal.close(&owner(webhook), secret.as_bytes())
}

/// A secret as it is stored under the current encryption key, unless it is already.
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

/// Signs what is sent to one webhook.
pub(crate) struct Signer(Vec<hmac::Key>);

impl Signer {
    /// Signs with each of these secrets, which are as they are stored.
    pub(crate) fn open<'a>(
        seal: &Seal,
        webhook: WebhookId,
        sealed: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, Fault> {
        let keys = sealed.into_iter().map(|sealed| {
            let secret = seal.open(&owner(webhook), sealed)?;
            let key = str::from_utf8(&secret).ok().and_then(key);
            let key = key.ok_or_else(|| Fault::internal("a stored secret is none"))?;
            Ok(hmac::Key::new(hmac::HMAC_SHA256, &key))
        });
        keys.collect::<Result<_, Fault>>().map(Self)
    }

    /// The header `webhook-signature` of a message; `timestamp` in seconds since 1970.
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

    /// The example of the reference implementations.
    #[test]
    fn signatures_are_as_others_make_them() {
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
    fn two_secrets_make_two_signatures() {
        let (seal, webhook) = (seal(), WebhookId::new());
        let secrets = [(); 2].map(|()| close(&seal, webhook, &generate().unwrap()).unwrap());
        let both = Signer::open(&seal, webhook, secrets.each_ref().map(String::as_str)).unwrap();
        let each = secrets.each_ref().map(|secret| {
            Signer::open(&seal, webhook, [secret.as_str()]).unwrap().sign("1", 2, b"{}")
        });
        assert_eq!(both.sign("1", 2, b"{}"), each.join(" "));
    }

    #[test]
    fn secrets_that_are_short_long_or_none_are_refused() {
        assert_eq!(problem(&generate().unwrap()), None);
        let of = |length| format!("whsec_{}", BASE64_STANDARD.encode(vec![7; length]));
        assert_eq!(problem(&of(24)), None);
        assert_eq!(problem(&of(64)), None);
        for wrong in ["", "whsec_", "whsec_!", "secret", &of(23), &of(65)] {
            assert!(problem(wrong).is_some(), "{wrong} was taken");
        }
    }
}
