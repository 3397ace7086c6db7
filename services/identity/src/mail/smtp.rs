//! Conversations with an SMTP server: one for each mail.
//!
//! Connections are not kept for further mails, as lettre's pool does. If a conversation is cut off at
//! its deadline, the pool keeps the connection, and takes the late answer for that to the next mail.

use std::time::Duration;

use lettre::{
    Message,
    transport::smtp::{
        Error, SMTP_PORT, SUBMISSION_PORT, SUBMISSIONS_PORT,
        authentication::{Credentials, DEFAULT_MECHANISMS},
        client::{AsyncSmtpConnection, Tls, TlsParameters},
        extension::ClientId,
    },
};
use percent_encoding::percent_decode_str;
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use url::Url;

/// Maximum time until an address of the server accepts a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time until the server says goodbye. It has accepted the mail before.
const QUIT_TIMEOUT: Duration = Duration::from_secs(2);

/// An SMTP server.
pub(super) struct Server {
    host: String,
    port: u16,
    tls: Tls,
    name: ClientId,
    credentials: Option<Credentials>,
}

impl Server {
    /// Returns the server with a URL, such as <smtps://user:password@host:465>.
    pub(super) fn parse(url: &SecretString) -> Option<Self> {
        let url = Url::parse(url.expose_secret()).ok()?;
        let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
        let tls = url.query_pairs().find(|(name, _)| name == "tls").map(|(_, value)| value);
        let parameters = || TlsParameters::new(host.clone()).ok();
        let (port, tls) = match (url.scheme(), tls.as_deref()) {
            ("smtp", None) => (SMTP_PORT, Tls::None),
            ("smtp", Some("required")) => (SUBMISSION_PORT, Tls::Required(parameters()?)),
            ("smtp", Some("opportunistic")) => (SUBMISSION_PORT, Tls::Opportunistic(parameters()?)),
            ("smtps", _) => (SUBMISSIONS_PORT, Tls::Wrapper(parameters()?)),
            _ => return None,
        };
        let decoded = |text| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
        let credentials = match url.password() {
            Some(password) => Some(Credentials::new(decoded(url.username())?, decoded(password)?)),
            None => None,
        };
        let name = match url.path().trim_matches('/') {
            "" => ClientId::default(),
            name => ClientId::Domain(name.to_owned()),
        };
        Some(Self { port: url.port().unwrap_or(port), host, tls, name, credentials })
    }

    /// Sends a mail. The server may take any time; the caller sets a deadline.
    pub(super) async fn send(&self, message: &Message) -> Result<(), Error> {
        let mut connection = self.connect().await?;
        connection.send(message.envelope(), &message.formatted()).await?;
        let _ = timeout(QUIT_TIMEOUT, connection.quit()).await;
        Ok(())
    }

    async fn connect(&self) -> Result<AsyncSmtpConnection, Error> {
        let wrapper = match &self.tls {
            Tls::Wrapper(parameters) => Some(parameters.clone()),
            _ => None,
        };
        let server = (self.host.as_str(), self.port);
        let mut connection = AsyncSmtpConnection::connect_tokio1(
            server,
            Some(CONNECT_TIMEOUT),
            &self.name,
            wrapper,
            None,
        )
        .await?;
        match &self.tls {
            Tls::Required(parameters) => {
                connection.starttls(parameters.clone(), &self.name).await?;
            }
            Tls::Opportunistic(parameters) if connection.can_starttls() => {
                connection.starttls(parameters.clone(), &self.name).await?;
            }
            _ => {}
        }
        if let Some(credentials) = &self.credentials {
            connection.auth(DEFAULT_MECHANISMS, credentials).await?;
        }
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_the_port_encryption_and_credentials() {
        assay_runtime::install_crypto();
        for (url, port, is_encrypted, login) in [
            ("smtp://mail.example", 25, false, None),
            ("smtp://[::1]:2525", 2525, false, None),
            ("smtp://mail.example?tls=required", 587, true, None),
            ("smtp://mail.example:26?tls=opportunistic", 26, true, None),
            ("smtps://ada%40b.example:p%2Fw@mail.example", 465, true, Some("ada@b.example")),
        ] {
            let server = Server::parse(&url.into()).unwrap();
            assert_eq!(server.port, port, "{url}");
            assert_eq!(!matches!(server.tls, Tls::None), is_encrypted, "{url}");
            let expected = login.map(|user| Credentials::new(user.to_owned(), "p/w".to_owned()));
            assert_eq!(server.credentials, expected, "{url}");
        }
        for url in ["", "mail.example", "http://mail.example", "smtp://mail.example?tls=maybe"] {
            assert!(Server::parse(&url.into()).is_none(), "{url}");
        }
    }
}
