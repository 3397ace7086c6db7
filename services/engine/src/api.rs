//! What an engine asks Assay.

use std::{fmt, time::Duration};

use assay_proto::execution::{
    CompleteLeaseInput, InstanceResultInput, Lease, LeaseInput, LeaseState,
};
use reqwest::{Client, Method, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::time::sleep;
use url::Url;

use crate::{Config, PAUSES};

/// How long Assay may take to answer; longer than it lets engines wait for work.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often something is sent that has to arrive: for some minutes.
const TRIES: u32 = 30;

#[derive(Clone)]
pub(crate) struct Api {
    client: Client,
    leases: String,
    token: SecretString,
}

/// Why Assay did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// It said so, with this code.
    Said { status: StatusCode, code: String, detail: String },
    /// It could not be asked.
    Unreachable(reqwest::Error),
}

/// The parts of a problem document (RFC 9457) that matter here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: String,
    detail: String,
}

impl Refusal {
    /// Whether trying again is of no use.
    pub(crate) fn is_final(&self) -> bool {
        let Self::Said { status, .. } = self else { return false };
        status.is_client_error()
            && !matches!(*status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
    }

    /// Whether the work is not this engine's any more.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, Self::Said { status: StatusCode::CONFLICT | StatusCode::NOT_FOUND, .. })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Said { status, code, detail } => write!(f, "{status} {code}: {detail}"),
            Self::Unreachable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<reqwest::Error> for Refusal {
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(error)
    }
}

impl Api {
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        let client = Client::builder().timeout(PATIENCE).connect_timeout(PATIENCE / 6).build()?;
        let base = config.url.as_str().trim_end_matches('/').trim_end_matches("/api");
        let leases = Url::parse(&format!("{base}/api/automation/leases"))?.to_string();
        Ok(Self { client, leases, token: config.token.clone() })
    }

    pub(crate) async fn lease(&self, wanted: &LeaseInput) -> Result<Vec<Lease>, Refusal> {
        self.ask(Method::POST, "", Some(wanted)).await
    }

    pub(crate) async fn renew(&self, id: &str) -> Result<LeaseState, Refusal> {
        self.ask(Method::POST, &format!("/{id}/heartbeat"), None::<&()>).await
    }

    /// Reports an instance, sooner or later; it may be sent again, since it counts once.
    pub(crate) async fn report(
        &self,
        id: &str,
        instance: InstanceResultInput,
    ) -> Result<(), Refusal> {
        self.insist(Method::POST, &format!("/{id}/instances"), Some(&[instance])).await
    }

    pub(crate) async fn complete(
        &self,
        id: &str,
        completion: &CompleteLeaseInput,
    ) -> Result<(), Refusal> {
        self.insist(Method::POST, &format!("/{id}/complete"), Some(completion)).await
    }

    pub(crate) async fn release(&self, id: &str) -> Result<(), Refusal> {
        self.insist(Method::DELETE, &format!("/{id}"), None::<&()>).await
    }

    /// Sends something again and again until Assay has answered.
    async fn insist(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<(), Refusal> {
        let mut pause = PAUSES.0;
        for _ in 1..TRIES {
            match self.send(method.clone(), path, body).await {
                Err(refusal) if !refusal.is_final() => {
                    tracing::warn!(%refusal, "not sent; trying again");
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
                answer => return answer.map(drop),
            }
        }
        self.send(method, path, body).await.map(drop)
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Refusal> {
        Ok(self.send(method, path, body).await?.json().await?)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<reqwest::Response, Refusal> {
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
        Err(Refusal::Said { status, code, detail })
    }
}
