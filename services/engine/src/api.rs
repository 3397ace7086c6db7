//! The part of Assay's interface for engines.

use std::time::Duration;

use assay_client::{Answer, Client, ClientError, send};
use assay_proto::execution::{
    CompleteLeaseInput, InstanceResultInput, Lease, LeaseInput, LeaseState, LeasedFile,
    LiveLogInput, LiveLogState, RenewLeaseInput,
};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde::{Serialize, de::DeserializeOwned};

use crate::config::Config;

/// Timeout of a request. It is longer than the time that a request may wait for work.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Time for the answer to a heartbeat beyond the time that it waits. A connection may break without a sign: then
/// the next heartbeat arrives while the lease is still held.
const ANSWER: Duration = Duration::from_secs(10);

/// Maximum size of an answer, in bytes: leases have the plans and subjects of their tests.
const LARGEST: u64 = 64 << 20;

#[derive(Clone)]
pub(crate) struct Api(Client);

/// Returns whether a lease no longer belongs to this engine.
pub(crate) fn is_loss(error: &ClientError) -> bool {
    matches!(error.status(), Some(StatusCode::CONFLICT | StatusCode::NOT_FOUND))
}

impl Api {
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        Ok(Self(Client::new(&config.account, TIMEOUT)?))
    }

    /// Leases schedules from the queue, and waits for work if it is empty.
    pub(crate) async fn lease(&self, lease: &LeaseInput) -> Result<Vec<Lease>, ClientError> {
        self.call("", Some(lease)).await
    }

    /// Renews a lease, and waits for up to this number of seconds until the test should stop.
    pub(crate) async fn renew(&self, id: &str, wait: u16) -> Result<LeaseState, ClientError> {
        let renewal = RenewLeaseInput { wait_in_sec: Some(wait.into()) };
        let request = self.0.request(Method::POST, &leases(&format!("/{id}/heartbeat")))?;
        let request = request.json(&renewal).timeout(Duration::from_secs(wait.into()) + ANSWER);
        send(request).await?.json(LARGEST).await
    }

    /// Appends text to the log of a lease.
    pub(crate) async fn append(
        &self,
        id: &str,
        log: &LiveLogInput,
    ) -> Result<LiveLogState, ClientError> {
        self.call(&format!("/{id}/log"), Some(log)).await
    }

    /// Reports an instance. Retries are safe: Assay counts each instance number once.
    pub(crate) async fn report(
        &self,
        id: &str,
        instance: InstanceResultInput,
    ) -> Result<(), ClientError> {
        self.send_reliably(Method::POST, &format!("/{id}/instances"), Some(&[instance])).await
    }

    pub(crate) async fn complete(
        &self,
        id: &str,
        completion: &CompleteLeaseInput,
    ) -> Result<(), ClientError> {
        self.send_reliably(Method::POST, &format!("/{id}/complete"), Some(completion)).await
    }

    pub(crate) async fn release(&self, id: &str) -> Result<(), ClientError> {
        self.send_reliably(Method::DELETE, &format!("/{id}"), None::<&()>).await
    }

    /// Requests the contents of a file of a lease from a position on. Both ids are UUIDs.
    pub(crate) async fn download(
        &self,
        id: &str,
        file: &LeasedFile,
        from: u64,
    ) -> Result<Answer, ClientError> {
        let path = leases(&format!("/{id}/files/{}", file.id));
        self.0.download(&path, &file.sha256, from).await
    }

    async fn send_reliably(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<(), ClientError> {
        let request = |client: &Client| {
            let request = client.request(method.clone(), &leases(path))?;
            Ok(body.iter().fold(request, RequestBuilder::json))
        };
        self.0.send_reliably(request).await.map(drop)
    }

    async fn call<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let request = self.0.request(Method::POST, &leases(path))?;
        let request = body.iter().fold(request, RequestBuilder::json);
        send(request).await?.json(LARGEST).await
    }
}

fn leases(path: &str) -> String {
    format!("/api/automation/leases{path}")
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, time::Instant};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_without_an_answer_leaves_time_for_another() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let api = Api::new(&Config::of(&["--url", &url, "--", "true"]).unwrap()).unwrap();
        let begun = Instant::now();
        assert!(api.renew("lease", 15).await.is_err());
        assert!(begun.elapsed() < Duration::from_secs(30), "half of the lease is over");
    }
}
