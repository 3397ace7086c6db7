//! HTTP client of Assay's interface, for programs that run beside it: engines and CI jobs.

mod backoff;

use std::{fmt, time::Duration};

use reqwest::{Method, RequestBuilder, Response, StatusCode, header::RETRY_AFTER};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use url::Url;

pub use self::backoff::Backoff;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of attempts to send a request, over about five minutes.
const ATTEMPTS: u32 = 30;

/// The URL of Assay and a token.
#[derive(clap::Args, Clone, Debug)]
pub struct Account {
    /// URL of Assay, such as <https://assay.example.org>
    #[arg(long, env = "ASSAY_URL", default_value = "http://127.0.0.1:8080")]
    pub url: Url,
    /// API token. Prefer a file, named in `ASSAY_TOKEN_FILE`: other users of the machine can see
    /// the options of a process
    #[arg(long, env = "ASSAY_TOKEN", hide_env_values = true)]
    pub token: SecretString,
}

/// A client that sends the token with each request.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: SecretString,
}

/// Failure of a request.
#[derive(Debug)]
pub enum ClientError {
    /// Assay answered with a problem document.
    Rejected {
        status: StatusCode,
        code: String,
        detail: String,
        /// Time after which a retry may succeed.
        retry_after: Option<Duration>,
    },
    /// The request failed, or its response was malformed.
    Unreachable(reqwest::Error),
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
        let builder =
            || reqwest::Client::builder().timeout(timeout).connect_timeout(CONNECT_TIMEOUT);
        let http = match builder().build() {
            Err(_) if account.url.scheme() == "http" => builder().tls_certs_only([]).build()?,
            built => built?,
        };
        let base = account.url.as_str().trim_end_matches('/').trim_end_matches("/api").to_owned();
        Ok(Self { http, base, token: account.token.clone() })
    }

    /// Returns the URL of a path that begins with `/api`.
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Begins a request for a path that begins with `/api`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let token = format!("Bearer {}", self.token.expose_secret());
        self.http.request(method, self.url(path)).header("Authentication", token)
    }

    /// Sends a request until Assay answers it, with a limited number of attempts. The requests that
    /// `request` returns must have the same effect as one of them.
    pub async fn send_reliably(
        &self,
        request: impl Fn(&Self) -> RequestBuilder,
    ) -> Result<Response, ClientError> {
        let mut backoff = Backoff::default();
        for _ in 1..ATTEMPTS {
            match send(request(self)).await {
                Err(error) if !error.is_permanent() => {
                    tracing::warn!(%error, "cannot send to Assay; will retry");
                    backoff.wait_at_least(error.retry_after()).await;
                }
                response => return response,
            }
        }
        send(request(self)).await
    }
}

/// Sends a request once.
pub async fn send(request: RequestBuilder) -> Result<Response, ClientError> {
    let response = request.send().await?;
    let status = response.status();
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(response);
    }
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|seconds| seconds.to_str().ok()?.parse().ok());
    let retry_after = retry_after.map(Duration::from_secs);
    let Problem { code, detail } = response.json().await.unwrap_or_default();
    Err(ClientError::Rejected { status, code, detail, retry_after })
}

impl ClientError {
    /// Returns whether a retry would fail in the same way.
    pub fn is_permanent(&self) -> bool {
        let Self::Rejected { status, .. } = self else { return false };
        status.is_client_error()
            && !matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
    }

    /// Returns the HTTP status of a rejected request.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Rejected { status, .. } => Some(*status),
            Self::Unreachable(_) => None,
        }
    }

    /// Returns whether Assay rejected the request with this code.
    pub fn has_code(&self, expected: &str) -> bool {
        matches!(self, Self::Rejected { code, .. } if code == expected)
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected { retry_after, .. } => *retry_after,
            Self::Unreachable(_) => None,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { status, code, detail, .. } => write!(f, "{status} {code}: {detail}"),
            Self::Unreachable(error) => {
                let mut error: &dyn std::error::Error = error;
                write!(f, "{error}")?;
                while let Some(source) = error.source() {
                    write!(f, ": {source}")?;
                    error = source;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for ClientError {}

impl From<reqwest::Error> for ClientError {
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(error)
    }
}
