//! HTTP client that sends one attempt of a delivery.

use std::{
    error::Error,
    iter::successors,
    sync::Arc,
    time::{Duration, Instant},
};

use assay_fair::Shares;
use assay_proto::CustomerId;
use assay_runtime::trace;
use reqwest::{Client, Response, header::RETRY_AFTER, redirect::Policy};
use tokio::time::timeout;
use url::Url;

use crate::{
    delivery::outcome::Outcome,
    egress::{EgressPolicy, LOOKUPS, Resolver, on_behalf_of},
    exchange::Exchange,
    message::Message,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time of an attempt, from the resolution of the host to the end of the response. A receiver may
/// hang at any point, or answer byte by byte.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(15);

/// Maximum time for reading the body of a response, and its maximum size in bytes. A connection is
/// reused only if the body was read to its end.
const BODY_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_BODY: usize = 16 << 10;

/// Maximum delay that a receiver can ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// Sends messages to the hosts that the policy allows.
#[derive(Clone)]
pub(crate) struct WebhookClient {
    policy: EgressPolicy,
    https: Client,
    http: Client,
}

impl WebhookClient {
    pub(crate) fn new(policy: &EgressPolicy) -> anyhow::Result<Self> {
        let lookups = Shares::new(LOOKUPS);
        let resolver = |is_https| {
            Arc::new(Resolver { policy: policy.clone(), is_https, lookups: lookups.clone() })
        };
        let client = |is_https| {
            Client::builder()
                .user_agent(concat!("Assay/", env!("CARGO_PKG_VERSION")))
                .https_only(is_https)
                .redirect(Policy::none())
                // A proxy would resolve the host itself, past the policy.
                .no_proxy()
                .dns_resolver(resolver(is_https))
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(RESPONSE_TIMEOUT)
                .pool_idle_timeout(Duration::from_secs(30))
                .build()
        };
        Ok(Self { policy: policy.clone(), https: client(true)?, http: client(false)? })
    }

    /// Sends a message of a customer once, within the current span, and waits at most `patience` for the response.
    pub(crate) async fn send(
        &self,
        customer: CustomerId,
        url: &str,
        mut message: Message,
        patience: Duration,
    ) -> Outcome {
        trace::inject(&mut message.headers);
        let mut exchange = Exchange::of(&message.headers, &message.body);
        let url = match Url::parse(url) {
            Ok(url) => match self.policy.problem(&url) {
                None => url,
                Some(problem) => {
                    return Outcome::failed(format!("the URL {problem}")).with(exchange);
                }
            },
            Err(_) => return Outcome::failed("the URL is malformed".to_owned()).with(exchange),
        };
        let client = if url.scheme() == "https" { &self.https } else { &self.http };
        let Message { headers, body } = message;
        let begun = Instant::now();
        let request = client.post(url).headers(headers.clone()).body(body).timeout(patience);
        let sent = on_behalf_of(customer, request.send()).await;
        exchange.duration = begun.elapsed();
        match sent {
            Ok(response) => {
                let retry_after = retry_after(&response);
                let outcome = Outcome::answered(response.status().as_u16());
                let received = response.headers().clone();
                let (body, is_whole) = read_body(response).await;
                exchange.answered(&headers, &received, (&body[..], is_whole));
                Outcome { retry_after, ..outcome }.with(exchange)
            }
            Err(error) => Outcome::failed(reason(&error, patience)).with(exchange),
        }
    }
}

fn retry_after(response: &Response) -> Duration {
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let seconds = seconds.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or_default();
    Duration::from_secs(seconds).min(MAX_RETRY_AFTER)
}

/// Reads the body of a response, up to its maximum size and as far as it arrives in time. Returns it, and whether it is
/// whole.
async fn read_body(mut response: Response) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    let read = async {
        while let Some(chunk) = response.chunk().await? {
            let free = MAX_BODY.saturating_sub(body.len());
            body.extend_from_slice(&chunk[..chunk.len().min(free)]);
            if chunk.len() > free {
                return Ok(false);
            }
        }
        Ok::<_, reqwest::Error>(true)
    };
    let is_whole = matches!(timeout(BODY_TIMEOUT, read).await, Ok(Ok(true)));
    (body, is_whole)
}

/// Describes the failure to the people who manage the webhook.
fn reason(error: &reqwest::Error, patience: Duration) -> String {
    if error.is_timeout() {
        let seconds = patience.as_secs();
        return format!("the receiver did not answer within {seconds} s");
    }
    // The last cause is the most specific one; the first only states that a request failed.
    let causes = successors(Some(error as &dyn Error), |&error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
