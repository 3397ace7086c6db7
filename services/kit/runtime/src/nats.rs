//! The connection to NATS.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use async_nats::{Client, ConnectOptions, Event, Message, ServerAddr};
use futures::StreamExt as _;
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret as _, SecretString};

use crate::Runtime;

/// Maximum time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of connections to NATS.
#[derive(clap::Args, Clone, Debug)]
pub struct NatsServers {
    /// URLs of the NATS servers with JetStream, as <nats://user:password@host:port>, separated by commas
    #[arg(
        long,
        env = "ASSAY_NATS_URL",
        default_value = "nats://127.0.0.1:4222",
        hide_env_values = true
    )]
    pub nats_url: SecretString,
    /// File with the credentials (JWT and seed) for NATS
    #[arg(long, env = "ASSAY_NATS_CREDENTIALS_FILE")]
    pub nats_credentials_file: Option<PathBuf>,
    /// File with the certificates (PEM) of authorities that NATS servers are trusted by,
    /// instead of those of the system
    #[arg(long, env = "ASSAY_NATS_CA_FILE")]
    pub nats_ca_file: Option<PathBuf>,
    /// File with the certificate chain (PEM) that this program presents to NATS servers
    #[arg(long, env = "ASSAY_NATS_CERTIFICATE_FILE", requires = "nats_key_file")]
    pub nats_certificate_file: Option<PathBuf>,
    /// File with the private key (PEM) of the certificate for NATS
    #[arg(long, env = "ASSAY_NATS_KEY_FILE", requires = "nats_certificate_file")]
    pub nats_key_file: Option<PathBuf>,
}

impl NatsServers {
    /// Settings for servers that require neither credentials files nor certificates.
    pub fn at(nats_url: SecretString) -> Self {
        Self {
            nats_url,
            nats_credentials_file: None,
            nats_ca_file: None,
            nats_certificate_file: None,
            nats_key_file: None,
        }
    }
}

/// Connects under the name of a program, in the background, and reconnects whenever the connection
/// is lost. Fails only if the configuration is not valid.
pub async fn connect(servers: &NatsServers, name: &str) -> anyhow::Result<Client> {
    let (addresses, options) = options(servers, name).await?;
    options.retry_on_initial_connect().connect(addresses).await.context("ASSAY_NATS_URL")
}

/// Connects for a command of an operator. Fails if no server answers.
pub async fn connect_now(servers: &NatsServers, name: &str) -> anyhow::Result<Client> {
    let (addresses, options) = options(servers, name).await?;
    options.connect(addresses).await.context("cannot connect to NATS at ASSAY_NATS_URL")
}

/// Returns the options of a connection. Replies arrive on `_INBOX_assay.<program>`, so that a NATS
/// user can be restricted to the replies to its own requests.
async fn options(
    servers: &NatsServers,
    name: &str,
) -> anyhow::Result<(Vec<ServerAddr>, ConnectOptions)> {
    let addresses = addresses(&servers.nats_url)?;
    let program = name.strip_prefix("assay-").unwrap_or(name);
    let mut options = ConnectOptions::new()
        .name(name)
        .custom_inbox_prefix(format!("_INBOX_assay.{program}"))
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(Duration::from_secs(10))
        .reconnect_delay_callback(|attempts| {
            Duration::from_millis(100 * attempts as u64).min(Duration::from_secs(1))
        })
        .event_callback(|event| async move { log(&event) });
    if let Some((user, password)) = addresses.iter().find_map(credentials) {
        options = options.user_and_password(user, password);
    }
    let addresses = addresses.into_iter().map(without_credentials).collect::<Result<_, _>>()?;
    if let Some(path) = &servers.nats_credentials_file {
        options = options.credentials_file(path).await.context("ASSAY_NATS_CREDENTIALS_FILE")?;
    }
    if let Some(path) = &servers.nats_ca_file {
        options = options.add_root_certificates(path.clone());
    }
    // The client reads the files for every connection, so replaced ones apply from the next one on.
    if let Some((certificate, key)) =
        servers.nats_certificate_file.iter().zip(&servers.nats_key_file).next()
    {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok((addresses, options))
}

/// Returns the user and the password in a URL, which the client itself ignores.
fn credentials(address: &ServerAddr) -> Option<(String, String)> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let (user, password) = (address.username()?, address.password().unwrap_or_default());
    Some((decoded(user), decoded(password)))
}

/// Returns an address without user and password: the client logs addresses as they are.
fn without_credentials(address: ServerAddr) -> anyhow::Result<ServerAddr> {
    let mut url = address.into_inner();
    let removed = url.set_password(None).and_then(|()| url.set_username(""));
    removed.map_err(|()| anyhow::anyhow!("ASSAY_NATS_URL has a server without a host"))?;
    Ok(ServerAddr::from_url(url)?)
}

/// Calls `handle` with each message on a subject until the program stops. Messages may be lost.
pub fn subscribe(
    runtime: &Runtime,
    client: Client,
    subject: String,
    mut handle: impl FnMut(&Message) + Send + 'static,
) {
    let stopping = runtime.stopping();
    runtime.spawn("messages", async move {
        let mut messages = client.subscribe(subject).await?;
        // The stream ends with the connection, which lives as long as the program.
        while let Some(Some(message)) = stopping.run_until_cancelled(messages.next()).await {
            handle(&message);
        }
        Ok(())
    });
}

fn addresses(urls: &SecretString) -> anyhow::Result<Vec<ServerAddr>> {
    let servers: Result<_, _> = urls.expose_secret().split(',').map(str::parse).collect();
    // Without the cause, which may quote the URL and its password.
    servers.map_err(|_| anyhow::anyhow!("ASSAY_NATS_URL is not a list of NATS URLs"))
}

fn log(event: &Event) {
    match event {
        Event::Connected => tracing::info!("connected to NATS"),
        Event::Disconnected => tracing::warn!("lost the connection to NATS"),
        Event::Closed => tracing::debug!("closed the connection to NATS"),
        // Emitted for each attempt to reconnect.
        Event::ClientError(error) => tracing::debug!(%error, "NATS connection failed"),
        // For example, a missing permission.
        Event::ServerError(error) => tracing::warn!(%error, "refused by NATS"),
        event => tracing::warn!(%event, "NATS connection"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_user_and_password_of_a_url_are_decoded() {
        for (url, expected) in [
            ("nats://nats:4222", None),
            ("nats://ada@nats", Some(("ada", ""))),
            ("tls://ada:a%40b%3A%2F@nats:4222", Some(("ada", "a@b:/"))),
        ] {
            let read = credentials(&url.parse().unwrap());
            let read = read.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
            assert_eq!(read, expected, "{url}");
        }
    }

    #[test]
    fn addresses_that_the_client_logs_have_no_password() {
        let urls = "nats://ada:canary@nats:4222,tls://ada:canary@[::1]:4223,nats://nats";
        let addresses = addresses(&urls.into()).unwrap();
        let shown: Vec<_> =
            addresses.into_iter().map(|one| without_credentials(one).unwrap()).collect();
        let hosts: Vec<_> = shown.iter().map(|one| (one.host(), one.port())).collect();
        assert_eq!(hosts, [("nats", 4222), ("::1", 4223), ("nats", 4222)]);
        let shown = format!("{shown:?}");
        assert!(!shown.contains("canary") && !shown.contains("ada"), "{shown}");
    }
}
