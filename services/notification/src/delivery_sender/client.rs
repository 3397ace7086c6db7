//! HTTP client that sends one attempt of a delivery.

use std::{error::Error, iter::successors, sync::Arc, time::Duration};

use assay_runtime::trace;
use reqwest::{
    Client, Response,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
    redirect::Policy,
};
use tokio::time::timeout;
use url::Url;

use crate::{
    delivery::outcome::Outcome,
    egress::{EgressPolicy, Resolver},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time of an attempt, from the resolution of the host to the end of the response. A receiver may
/// hang at any point, or answer byte by byte.
pub(super) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum time for reading the body of a response, and its maximum size in bytes. A connection is
/// reused only if the body was read to its end.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_BODY: usize = 16 << 10;

/// Maximum delay that a receiver can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// Sends messages to the hosts that the policy allows.
#[derive(Clone)]
pub(super) struct WebhookClient {
    policy: EgressPolicy,
    https: Client,
    http: Client,
}

/// A signed message.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    /// Time of sending, in seconds since 1970.
    pub(super) timestamp: i64,
    pub(super) signature: &'a str,
    pub(super) body: Vec<u8>,
}

impl WebhookClient {
    pub(super) fn new(policy: &EgressPolicy) -> anyhow::Result<Self> {
        let client = |is_https| {
            Client::builder()
                .user_agent(concat!("Assay/", env!("CARGO_PKG_VERSION")))
                .https_only(is_https)
                .redirect(Policy::none())
                // A proxy would resolve the host itself, past the policy.
                .no_proxy()
                .dns_resolver(Arc::new(Resolver { policy: policy.clone(), is_https }))
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(RESPONSE_TIMEOUT)
                .pool_idle_timeout(Duration::from_secs(30))
                .build()
        };
        Ok(Self { policy: policy.clone(), https: client(true)?, http: client(false)? })
    }

    /// Sends a message once.
    pub(super) async fn send(&self, url: &str, message: Message<'_>) -> Outcome {
        let Ok(url) = Url::parse(url) else {
            return Outcome::failed("the URL is malformed".to_owned());
        };
        if let Some(problem) = self.policy.problem(&url) {
            return Outcome::failed(format!("the URL {problem}"));
        }
        let mut headers = HeaderMap::new();
        trace::inject(&mut headers);
        let client = if url.scheme() == "https" { &self.https } else { &self.http };
        let request = client
            .post(url)
            .headers(headers)
            .header(CONTENT_TYPE, assay_events::CONTENT_TYPE)
            .header("webhook-id", message.id)
            .header("webhook-timestamp", message.timestamp)
            .header("webhook-signature", message.signature)
            .body(message.body);
        match request.send().await {
            Ok(response) => {
                let retry_after = retry_after(&response);
                let outcome = Outcome::answered(response.status().as_u16());
                let _ = timeout(BODY_TIMEOUT, read_body(response)).await;
                Outcome { retry_after, ..outcome }
            }
            Err(error) => Outcome::failed(reason(&error)),
        }
    }
}

fn retry_after(response: &Response) -> Duration {
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let seconds = seconds.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or_default();
    Duration::from_secs(seconds).min(MAX_RETRY_AFTER)
}

async fn read_body(mut response: Response) {
    let mut size = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        size += chunk.len();
        if size > MAX_BODY {
            return;
        }
    }
}

/// Describes the failure to the people who manage the webhook.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        let seconds = RESPONSE_TIMEOUT.as_secs();
        return format!("the receiver did not answer within {seconds} s");
    }
    // The last cause is the most specific one; the first only states that a request failed.
    let causes = successors(Some(error as &dyn Error), |&error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
