//! One attempt of a delivery, by HTTP.

use std::{error::Error, iter::successors, sync::Arc, time::Duration};

use assay_runtime::trace;
use reqwest::{
    Client, Response, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER},
    redirect::Policy,
};
use tokio::time::timeout;
use url::Url;

use super::reach::{Reach, Resolver};

/// How long a receiver may take to accept a connection, and to answer.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(15);

/// How long, and how much, of what a receiver says besides is waited for: its connection can be
/// used again if it says little.
const CHATTER: (Duration, usize) = (Duration::from_secs(1), 16 << 10);

/// For how long a receiver may ask to be left alone.
const LONGEST_REST: Duration = Duration::from_hours(1);

/// Sends messages to where they may be sent.
#[derive(Clone)]
pub(super) struct Post {
    reach: Reach,
    https: Client,
    http: Client,
}

/// What is sent.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    /// When it is sent, in seconds since 1970.
    pub(super) timestamp: i64,
    pub(super) signature: &'a str,
    pub(super) body: Vec<u8>,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) status: Option<StatusCode>,
    /// Why it was not taken, if it was not.
    pub(super) problem: Option<String>,
    /// How long the receiver asks not to be tried again; zero where it does not.
    pub(super) retry_after: Duration,
}

impl Outcome {
    /// That a receiver has answered.
    pub(super) fn answered(status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let problem = if status.is_success() {
            None
        } else if status.is_redirection() {
            Some(format!("{status} was answered; redirects are not followed"))
        } else {
            Some(format!("{status} was answered"))
        };
        Self { status: Some(status), problem, retry_after: Duration::ZERO }
    }

    fn failed(problem: String) -> Self {
        Self { status: None, problem: Some(problem), retry_after: Duration::ZERO }
    }

    /// Whether the receiver has said that it will never take anything again.
    pub(super) fn is_gone(&self) -> bool {
        self.status == Some(StatusCode::GONE)
    }
}

impl Post {
    pub(super) fn new(reach: &Reach) -> anyhow::Result<Self> {
        let client = |is_https| {
            Client::builder()
                .user_agent(concat!("Assay/", env!("CARGO_PKG_VERSION")))
                .https_only(is_https)
                .redirect(Policy::none())
                // A proxy would look the host up itself.
                .no_proxy()
                .dns_resolver(Arc::new(Resolver { reach: reach.clone(), is_https }))
                .connect_timeout(CONNECT)
                .timeout(ANSWER)
                .pool_idle_timeout(Duration::from_secs(30))
                .build()
        };
        Ok(Self { reach: reach.clone(), https: client(true)?, http: client(false)? })
    }

    /// Sends a message once.
    pub(super) async fn send(&self, url: &str, message: Message<'_>) -> Outcome {
        let Ok(url) = Url::parse(url) else {
            return Outcome::failed("the URL cannot be read".to_owned());
        };
        if let Some(problem) = self.reach.problem(&url) {
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
                let _ = timeout(CHATTER.0, hear_out(response)).await;
                Outcome { retry_after, ..outcome }
            }
            Err(error) => Outcome::failed(reason(&error)),
        }
    }
}

fn retry_after(response: &Response) -> Duration {
    let seconds = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let seconds = seconds.and_then(|seconds| seconds.trim().parse().ok()).unwrap_or_default();
    Duration::from_secs(seconds).min(LONGEST_REST)
}

async fn hear_out(mut response: Response) {
    let mut heard = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        heard += chunk.len();
        if heard > CHATTER.1 {
            return;
        }
    }
}

/// Why there was no answer, for the person who set the webhook up.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        let seconds = ANSWER.as_secs();
        return format!("there was no answer within {seconds} s");
    }
    // The last cause tells most: the first ones only say that a request has failed.
    let causes = successors(Some(error as &dyn Error), |&error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}
