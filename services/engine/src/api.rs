//! Client of the automation interface of Assay.

use std::{fmt, time::Duration};

use assay_proto::execution::{
    CompleteLeaseInput, InstanceResultInput, Lease, LeaseInput, LeaseState,
};
use reqwest::{Client, Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use url::Url;

use crate::{backoff::Backoff, config::Config};

/// Timeout of a request. It is longer than the time that a request may wait for work.
const TIMEOUT: Duration = Duration::from_mins(1);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of attempts to send a result, over about five minutes.
const ATTEMPTS: u32 = 30;

#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
    leases: String,
    token: SecretString,
}

/// Failure of a request.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// Assay answered with a problem document.
    Rejected { status: StatusCode, code: String, detail: String },
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

impl ApiError {
    /// Returns whether a retry would fail in the same way.
    pub(crate) fn is_permanent(&self) -> bool {
        let Self::Rejected { status, .. } = self else { return false };
        status.is_client_error()
            && !matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
    }

    /// Returns whether the lease no longer belongs to this engine.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, Self::Rejected { status: StatusCode::CONFLICT | StatusCode::NOT_FOUND, .. })
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { status, code, detail } => write!(f, "{status} {code}: {detail}"),
            Self::Unreachable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ApiError {}

impl From<reqwest::Error> for ApiError {
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(error)
    }
}

impl Api {
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let client = Client::builder().timeout(TIMEOUT).connect_timeout(CONNECT_TIMEOUT).build()?;
        let base = config.url.as_str().trim_end_matches('/').trim_end_matches("/api");
        let leases = Url::parse(&format!("{base}/api/automation/leases"))?.to_string();
        Ok(Self { client, leases, token: config.token.clone() })
    }

    /// Leases schedules from the queue, and waits for work if it is empty.
    pub(crate) async fn lease(&self, lease: &LeaseInput) -> Result<Vec<Lease>, ApiError> {
        self.call(Method::POST, "", Some(lease)).await
    }

    pub(crate) async fn renew(&self, id: &str) -> Result<LeaseState, ApiError> {
        self.call(Method::POST, &format!("/{id}/heartbeat"), None::<&()>).await
    }

    /// Reports an instance. Retries are safe: Assay counts each instance number once.
    pub(crate) async fn report(
        &self,
        id: &str,
        instance: InstanceResultInput,
    ) -> Result<(), ApiError> {
        self.send_reliably(Method::POST, &format!("/{id}/instances"), Some(&[instance])).await
    }

    pub(crate) async fn complete(
        &self,
        id: &str,
        completion: &CompleteLeaseInput,
    ) -> Result<(), ApiError> {
        self.send_reliably(Method::POST, &format!("/{id}/complete"), Some(completion)).await
    }

    pub(crate) async fn release(&self, id: &str) -> Result<(), ApiError> {
        self.send_reliably(Method::DELETE, &format!("/{id}"), None::<&()>).await
    }

    /// Sends a request until Assay answers it, with a limited number of attempts.
    async fn send_reliably(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<(), ApiError> {
        let mut backoff = Backoff::default();
        for _ in 1..ATTEMPTS {
            match self.send(method.clone(), path, body).await {
                Err(error) if !error.is_permanent() => {
                    tracing::warn!(%error, "cannot send to Assay; will retry");
                    backoff.wait().await;
                }
                response => return response.map(drop),
            }
        }
        self.send(method, path, body).await.map(drop)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ApiError> {
        Ok(self.send(method, path, body).await?.json().await?)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<reqwest::Response, ApiError> {
        let token = format!("Bearer {}", self.token.expose_secret());
        let mut request = self.client.request(method, format!("{}{path}", self.leases));
        request = request.header("Authentication", token);
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let Problem { code, detail } = response.json().await.unwrap_or_default();
        Err(ApiError::Rejected { status, code, detail })
    }
}
