//! Forged and misused tokens, as described in RFC 8725.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_auth::{SigningKey, Verifier};
use assay_proto::Fault;
use aws_lc_rs::{hmac, signature::Ed25519KeyPair};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use serde_json::{Value, json};

use crate::world::{grant, issuer, now};

/// A forger with the public key, and with the private one for tokens that are nearly valid.
struct Forger {
    key: SigningKey,
    kid: String,
    public: Vec<u8>,
    verifier: Verifier,
}

impl Forger {
    fn new() -> Result<Self> {
        let key = SigningKey::generate()?;
        let issuer = assay_auth::Issuer::new(&key, Duration::from_hours(1))?;
        let public = serde_json::to_value(issuer.public())?;
        Ok(Self {
            kid: issuer.kid().to_owned(),
            public: BASE64.decode(public["x"].as_str().unwrap())?,
            verifier: Verifier::of_keys(&issuer.jwks()?)?,
            key,
        })
    }

    fn header(&self) -> Value {
        json!({"typ": "JWT", "alg": "EdDSA", "kid": self.kid})
    }

    /// Signs a token as the issuer does.
    fn signed(&self, header: &Value, claims: &Value) -> String {
        let key = Ed25519KeyPair::from_pkcs8(self.key.der()).unwrap();
        with_signature(header, claims, |text| key.sign(text).as_ref().to_vec())
    }

    #[track_caller]
    fn assert_rejected(&self, what: &str, token: &str) {
        let verified = futures::executor::block_on(self.verifier.verify(token));
        assert!(matches!(verified, Err(Fault::Unauthenticated)), "{what}: {verified:?}");
    }
}

fn with_signature(header: &Value, claims: &Value, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let [header, claims] = [header, claims].map(|part| BASE64.encode(part.to_string()));
    let text = format!("{header}.{claims}");
    let signature = BASE64.encode(sign(text.as_bytes()));
    format!("{text}.{signature}")
}

/// Signs a token with a public key, used as a shared secret.
fn signed_with_public_key(header: &Value, claims: &Value, key: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    with_signature(header, claims, |text| hmac::sign(&key, text).as_ref().to_vec())
}

/// Returns valid claims.
fn claims() -> Value {
    let seconds = now() / 1_000_000;
    json!({
        "iss": "assay", "aud": "assay", "jti": "0197a5a4-0000-7000-8000-000000000000",
        "iat": seconds, "iat_us": now(), "exp": seconds + 60,
        "sub": "0197a5a4-0000-7000-8000-000000000001",
        "customer": "0197a5a4-0000-7000-8000-000000000002",
        "name": "Ada Lovelace", "permissions": "Login, Read",
    })
}

fn with(mut object: Value, name: &str, value: impl Into<Value>) -> Value {
    object[name] = value.into();
    object
}

fn without(mut object: Value, name: &str) -> Value {
    object.as_object_mut().unwrap().remove(name);
    object
}

#[tokio::test]
async fn a_valid_token_is_accepted() -> Result<()> {
    let forger = Forger::new()?;
    let caller = forger.verifier.verify(&forger.signed(&forger.header(), &claims())).await?;
    assert_eq!(&*caller.name, "Ada Lovelace");
    Ok(())
}

#[test]
fn tokens_with_another_algorithm_are_rejected() -> Result<()> {
    let forger = Forger::new()?;
    for alg in ["none", "None", "NONE", ""] {
        let header = with(forger.header(), "alg", alg);
        forger.assert_rejected(alg, &with_signature(&header, &claims(), |_| Vec::new()));
        forger.assert_rejected(alg, &forger.signed(&header, &claims()));
    }
    let public_jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(&forger.public)});
    for alg in ["HS256", "HS512", "EdDSA"] {
        let header = with(forger.header(), "alg", alg);
        for key in [forger.public.as_slice(), public_jwk.to_string().as_bytes()] {
            forger.assert_rejected(alg, &signed_with_public_key(&header, &claims(), key));
        }
    }
    for alg in ["ES256", "RS256", "PS256"] {
        let header = with(forger.header(), "alg", alg);
        forger.assert_rejected(alg, &forger.signed(&header, &claims()));
    }
    forger.assert_rejected("no alg", &forger.signed(&without(forger.header(), "alg"), &claims()));
    Ok(())
}

#[test]
fn tokens_with_another_key_are_rejected() -> Result<()> {
    let forger = Forger::new()?;
    for kid in ["../../dev/null", "/etc/passwd", "' or 1=1 --", "http://evil.example/k", "a\0b"] {
        let header = with(forger.header(), "kid", kid);
        forger.assert_rejected(kid, &forger.signed(&header, &claims()));
    }
    for kid in [json!("unknown"), json!("k".repeat(1000)), json!(7), json!(null), json!("")] {
        let header = with(forger.header(), "kid", kid.clone());
        forger.assert_rejected(&kid.to_string(), &forger.signed(&header, &claims()));
    }
    forger.assert_rejected("no kid", &forger.signed(&without(forger.header(), "kid"), &claims()));

    let other = Forger { key: SigningKey::generate()?, ..Forger::new()? };
    let header = forger.header();
    forger.assert_rejected("another key", &other.signed(&header, &claims()));
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(&other.public)});
    for (name, value) in [("jwk", jwk), ("jku", json!("http://evil.example/keys"))] {
        forger.assert_rejected(name, &other.signed(&with(header.clone(), name, value), &claims()));
    }
    forger.assert_rejected("another issuer's", &issuer()?.issue(grant())?);
    Ok(())
}

#[test]
fn tokens_with_invalid_claims_are_rejected() -> Result<()> {
    let forger = Forger::new()?;
    let seconds = now() / 1_000_000;
    let wrong = [
        ("iss", json!("evil")),
        ("iss", json!(["evil"])),
        ("aud", json!("other")),
        ("aud", json!(["other"])),
        ("exp", json!(seconds - 6)),
        ("exp", json!((seconds + 60).to_string())),
        ("exp", json!(-1)),
        ("exp", json!(1e300)),
        ("exp", json!(null)),
        ("exp", json!(seconds + 366 * 24 * 3600)),
        ("nbf", json!(seconds + 60)),
        ("iat", json!(seconds.to_string())),
        ("iat_us", json!("0")),
        ("sub", json!("nobody")),
        ("customer", json!("*")),
        ("permissions", json!("Everything")),
        ("permissions", json!("")),
        ("permissions", json!(["Read"])),
        ("api_token", json!("none")),
    ];
    for (name, value) in wrong {
        let claims = with(claims(), name, value);
        forger.assert_rejected(&claims.to_string(), &forger.signed(&forger.header(), &claims));
    }
    for name in ["iss", "aud", "iat", "iat_us", "exp", "sub", "customer", "permissions"] {
        let claims = without(claims(), name);
        forger.assert_rejected(&claims.to_string(), &forger.signed(&forger.header(), &claims));
    }
    for whole in [json!([]), json!("claims"), json!(null)] {
        forger.assert_rejected(&whole.to_string(), &forger.signed(&forger.header(), &whole));
    }
    Ok(())
}

#[test]
fn incomplete_tokens_are_rejected() -> Result<()> {
    let forger = Forger::new()?;
    let token = forger.signed(&forger.header(), &claims());
    let parts: Vec<_> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("{token}") };
    for wrong in [
        String::new(),
        ".".to_owned(),
        "..".to_owned(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{header}..{signature}"),
        format!(".{claims}.{signature}"),
        format!("{token}."),
        format!("{token}.{signature}"),
        format!("{token}="),
        format!(" {token}"),
        format!("{token}\n"),
        format!("{header}.{}.{signature}", BASE64.encode("{}")),
        token[..token.len() - 1].to_owned(),
        token.to_uppercase(),
        format!("{{\"payload\":\"{claims}\",\"signatures\":[]}}"),
    ] {
        forger.assert_rejected(&format!("{wrong:?}"), &wrong);
    }
    for end in [1, header.len(), token.len() / 2, token.len() - 40] {
        forger.assert_rejected("truncated", &token[..end]);
    }
    Ok(())
}

#[test]
fn oversized_tokens_are_rejected_without_parsing() -> Result<()> {
    let forger = Forger::new()?;
    let padded = with(claims(), "padding", "x".repeat(8 << 20));
    let huge = forger.signed(&forger.header(), &padded);
    let started = Instant::now();
    for _ in 0..1000 {
        forger.assert_rejected("huge", &huge);
    }
    let took = started.elapsed();
    assert!(took < Duration::from_millis(100), "rejecting 8 GiB took {took:?}");
    forger.assert_rejected("a huge API token", &format!("assay_{}", "x".repeat(8 << 20)));
    Ok(())
}
