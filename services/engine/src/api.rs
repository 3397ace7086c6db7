//! The part of Assay's interface for engines.

use std::time::Duration;

use assay_client::{Answer, Client, ClientError, send};
use assay_proto::{
    Timestamp,
    execution::{
        CompleteLeaseInput, InstanceResultInput, Lease, LeaseInput, LeaseState, LeasedFile,
        LiveLogInput, LiveLogState, RenewLeaseInput,
    },
};
use chrono::DateTime;
use reqwest::{Method, RequestBuilder, StatusCode, header::DATE};
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

/// Says why a result was not reported, for the people who read the report.
pub(crate) fn unreported(error: &ClientError) -> String {
    if error.status().is_some_and(|status| status.is_client_error()) {
        return format!("Assay rejected the result: {error}");
    }
    format!("The result could not be sent: {error}")
}

impl Api {
    pub(crate) fn new(config: &Config) -> anyhow::Result<Self> {
        Ok(Self(Client::new(&config.account, TIMEOUT)?))
    }

    /// Leases schedules from the queue, and waits for work if it is empty.
    pub(crate) async fn lease(&self, lease: &LeaseInput) -> Result<Vec<Lease>, ClientError> {
        self.call("", Some(lease)).await
    }

    /// Renews a lease, and waits for up to this number of seconds until the test should stop. Also returns for how long
    /// Assay holds a lease; none if its answer does not show that.
    pub(crate) async fn renew(
        &self,
        id: &str,
        wait: u16,
    ) -> Result<(LeaseState, Option<Duration>), ClientError> {
        let renewal = RenewLeaseInput { wait_in_sec: Some(wait.into()) };
        let request = self.0.request(Method::POST, &leases(&format!("/{id}/heartbeat")))?;
        let request = request.json(&renewal).timeout(Duration::from_secs(wait.into()) + ANSWER);
        let answer = send(request).await?;
        let date = answer.header(DATE).map(str::to_owned);
        let state: LeaseState = answer.json(LARGEST).await?;
        let duration = date.and_then(|date| held_for(&date, state.expires_at?));
        Ok((state, duration))
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

/// Returns the time from the date of an answer to the end of its lease. Both are of Assay, so the time of this machine,
/// which may be wrong, does not matter.
fn held_for(date: &str, expires_at: Timestamp) -> Option<Duration> {
    let date = DateTime::parse_from_rfc2822(date).ok()?;
    expires_at.0.signed_duration_since(date).to_std().ok()
}

fn leases(path: &str) -> String {
    format!("/api/automation/leases{path}")
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, time::Instant};

    use super::*;

    #[test]
    fn the_duration_of_a_lease_is_that_between_two_times_of_assay() {
        let end = "2026-03-02T09:31:00.500000Z".parse().unwrap();
        let held = |date| held_for(date, Timestamp(end));
        let duration = held("Mon, 02 Mar 2026 09:30:00 GMT");
        assert_eq!(duration, Some(Duration::from_millis(60_500)));
        for wrong in ["Mon, 02 Mar 2026 09:32:00 GMT", "soon", ""] {
            assert_eq!(held(wrong), None, "{wrong}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_heartbeat_without_an_answer_leaves_time_for_another() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let api = Api::new(&Config::of(&["--url", &url, "--", "true"]).unwrap()).unwrap();
        let begun = Instant::now();
        let error = api.renew("lease", 15).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(30), "half of the lease is over");
        assert!(unreported(&error).starts_with("The result could not be sent: "));
    }
}
