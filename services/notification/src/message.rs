//! Messages to receivers: a body with its headers and signature.

use assay_auth::Seal;
use assay_proto::{Fault, WebhookId, notification::WebhookHeader};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::{
    format::Body,
    secret::{self, Sealed, Signer},
};

/// A signed message.
pub(crate) struct Message {
    /// Its headers. Those with secret values are marked as sensitive.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Makes the messages of one webhook.
pub(crate) struct Messages {
    signer: Signer,
    headers: HeaderMap,
}

impl Messages {
    /// Decrypts the secrets of a webhook.
    pub(crate) fn open(seal: &Seal, webhook: WebhookId, sealed: &Sealed) -> Result<Self, Fault> {
        let secrets = sealed.secrets.iter().map(String::as_str);
        let signer = Signer::open(seal, webhook, secrets)?;
        let mut headers = HeaderMap::new();
        for header in secret::open_headers(seal, webhook, sealed.headers.as_deref())? {
            let (name, value) = parse(&header).ok_or_else(|| {
                Fault::internal(format!("a stored header of webhook {webhook} is malformed"))
            })?;
            headers.append(name, value);
        }
        Ok(Self { signer, headers })
    }

    /// Returns a message with an id. `timestamp` is in seconds since 1970.
    pub(crate) fn message(&self, id: &str, timestamp: i64, body: Body) -> Result<Message, Fault> {
        let Body { media_type, content: body, .. } = body;
        let signature = self.signer.sign(id, timestamp, &body);
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        for (name, value) in [
            ("webhook-id", id),
            ("webhook-timestamp", &timestamp.to_string()),
            ("webhook-signature", &signature),
        ] {
            let value = HeaderValue::try_from(value).map_err(Fault::internal)?;
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(Message { headers, body })
    }
}

/// Returns a header as it is sent. Its value is marked as sensitive.
pub(crate) fn parse(header: &WebhookHeader) -> Option<(HeaderName, HeaderValue)> {
    let name = HeaderName::try_from(&header.name).ok()?;
    let mut value = HeaderValue::try_from(&header.value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
