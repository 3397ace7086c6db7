//! HTTP client of Assay's interface, for programs that run beside it: engines, CI jobs and transfers.
//!
//! A server, or a proxy in front of it, may be hostile: the token stays at its origin, bodies are read
//! with limits, and texts are harmless where they are printed.

mod answer;
mod backoff;
mod error;
mod foreign;
mod logs;
mod pages;
mod path;
mod redirect;

use std::time::Duration;

use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{
        ACCEPT_ENCODING, AUTHORIZATION, HeaderName, HeaderValue, IF_RANGE, RANGE, RETRY_AFTER,
    },
    redirect::Policy,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::time::{Instant, timeout};
use url::Url;

pub use self::{
    answer::{Answer, BodyReader, parse_json},
    backoff::{Attempts, Backoff},
    error::ClientError,
    foreign::{Foreign, harmless, markdown, visible},
    logs::install_logs,
    pages::Pages,
    path::segment,
    redirect::target as redirect_target,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of attempts to send a request, over about five minutes.
const ATTEMPTS: u32 = 30;

/// Time after which a request is not sent again, if its attempts take long.
const PATIENCE: Duration = Duration::from_mins(30);

/// Timeout of a download, and of the time until its response begins. The pauses within it are limited, too.
const DOWNLOAD: Duration = Duration::from_hours(24);
const BEGIN_OF_DOWNLOAD: Duration = Duration::from_mins(1);

/// Maximum size of a problem document, in bytes.
const LARGEST_PROBLEM: u64 = 64 << 10;

/// The URL of Assay and a token.
#[derive(clap::Args, Clone, Debug)]
pub struct Account {
    /// URL of Assay, such as <https://assay.example.org>. Redirects are not followed
    #[arg(long, env = "ASSAY_URL", default_value = "http://127.0.0.1:8080")]
    pub url: Url,
    /// API token. Prefer a file, named in `ASSAY_TOKEN_FILE`: other users of the machine can see
    /// the options of a process
    #[arg(long, env = "ASSAY_TOKEN", hide_env_values = true)]
    pub token: SecretString,
}

/// A client that sends the token with each request, and to one origin only.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    token: SecretString,
}

/// Fields of a problem document (RFC 9457).
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
}

impl Client {
    /// Creates a client with a timeout for each request. Fails if the machine has no certificates of
    /// authorities, which only HTTPS needs.
    pub fn new(account: &Account, timeout: Duration) -> reqwest::Result<Self> {
        let builder = || {
            reqwest::Client::builder()
                .timeout(timeout)
                .connect_timeout(CONNECT_TIMEOUT)
                .redirect(Policy::none())
        };
        let http = match builder().build() {
            Err(_) if account.url.scheme() == "http" => builder().tls_certs_only([]).build()?,
            built => built?,
        };
        Ok(Self { http, base: account.url.clone(), token: account.token.clone() })
    }

    /// Begins a request for a path that begins with `/api`. Fails if the path is not as a server would
    /// read it, such as one with `..`, or if the token cannot be sent.
    pub fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, ClientError> {
        let token = format!("Bearer {}", self.token.expose_secret());
        let mut token = HeaderValue::from_str(&token).map_err(|_| ClientError::Token)?;
        token.set_sensitive(true);
        let request = self.http.request(method, path::url(&self.base, path)?);
        Ok(request.header(self.header(), token))
    }

    /// Returns the header for the token. The standard one belongs to the proxy that a user and a
    /// password in the URL are for.
    fn header(&self) -> HeaderName {
        match self.base.username() {
            "" => AUTHORIZATION,
            _ => HeaderName::from_static("authentication"),
        }
    }

    /// Requests the contents of a file from a position on, once. The response is partial unless the position is
    /// 0, or the file has another SHA-256 than this one, in hexadecimal digits.
    pub async fn download(
        &self,
        path: &str,
        sha256: &str,
        from: u64,
    ) -> Result<Answer, ClientError> {
        let request = self.request(Method::GET, path)?;
        let request = request.header(ACCEPT_ENCODING, "identity").timeout(DOWNLOAD);
        let request = if from > 0 {
            let tag = format!("\"{sha256}\"");
            request.header(RANGE, format!("bytes={from}-")).header(IF_RANGE, tag)
        } else {
            request
        };
        let begun = timeout(BEGIN_OF_DOWNLOAD, send(request)).await;
        begun.unwrap_or(Err(ClientError::Stalled(BEGIN_OF_DOWNLOAD)))
    }

    /// Sends a request until Assay answers it, with a limited number of attempts. The requests that
    /// `request` returns must have the same effect as one of them.
    pub async fn send_reliably(
        &self,
        request: impl Fn(&Self) -> Result<RequestBuilder, ClientError>,
    ) -> Result<Answer, ClientError> {
        let (mut backoff, begun) = (Backoff::default(), Instant::now());
        for _ in 1..ATTEMPTS {
            match send(request(self)?).await {
                Err(error) if !error.is_permanent() && begun.elapsed() < PATIENCE => {
                    tracing::warn!(%error, "cannot send to Assay; will retry");
                    backoff.wait_at_least(error.retry_after()).await;
                }
                answer => return answer,
            }
        }
        send(request(self)?).await
    }
}

/// Sends a request once.
pub async fn send(request: RequestBuilder) -> Result<Answer, ClientError> {
    let response = request.send().await?;
    let status = response.status();
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(Answer::new(response));
    }
    if let Some(to) = redirect_target(&response) {
        return Err(ClientError::Redirected { to });
    }
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    let retry_after = retry_after.map(Duration::from_secs);
    let problem = Answer::new(response).json(LARGEST_PROBLEM).await;
    let Problem { code, detail } = problem.unwrap_or_default();
    Err(ClientError::Rejected { status, code, detail, retry_after })
}
