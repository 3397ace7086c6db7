//! Delivery of mails by SMTP or into a folder.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use assay_proto::Fault;
use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart,
        header::{Header, HeaderName, HeaderValue},
    },
    transport::smtp::{Error, response::Category},
};
use tokio::time::timeout;

use super::{claim::Queued, message::Letter, smtp::Server, store::Kind};
use crate::config::MailConfig;

/// Default sender of mails in a folder.
const DEFAULT_FROM: &str = "Assay <assay@localhost>";

/// Delivers mails.
pub(crate) struct Transport {
    /// Maximum duration of a delivery. A server may hang at any point of the conversation, or answer
    /// byte by byte.
    pub(crate) deadline: Duration,
    /// Maximum number of concurrent deliveries.
    pub(crate) most: usize,
    from: Mailbox,
    destination: Destination,
}

enum Destination {
    Smtp(Server),
    Folder(PathBuf),
}

/// Why a mail was not sent.
pub(crate) enum SendError {
    /// A retry may succeed.
    Transient(String),
    /// The server has rejected this mail.
    Permanent(String),
}

impl Transport {
    /// Delivers by SMTP if a URL is configured, otherwise into the folder.
    pub(crate) fn new(config: &MailConfig) -> anyhow::Result<Self> {
        let destination = match (&config.smtp_url, &config.mail_dir) {
            (Some(url), _) => {
                // The cause may quote the URL and its password.
                let server = Server::parse(url);
                let invalid = "ASSAY_SMTP_URL is not a valid URL of an SMTP server";
                Destination::Smtp(server.context(invalid)?)
            }
            (None, Some(folder)) => Destination::Folder(folder.clone()),
            (None, None) => bail!("set ASSAY_SMTP_URL or ASSAY_MAIL_DIR for sending mails"),
        };
        let from = match (config.mail_from.as_deref(), &destination) {
            (Some(from), _) => from,
            (None, Destination::Folder(_)) => DEFAULT_FROM,
            (None, Destination::Smtp(_)) => bail!("set ASSAY_MAIL_FROM to the sender of mails"),
        };
        Ok(Self {
            deadline: Duration::from_secs(config.mail_timeout_seconds.into()),
            most: config.mail_connections.into(),
            from: from.parse().context("ASSAY_MAIL_FROM")?,
            destination,
        })
    }

    /// Delivers a mail within the deadline.
    pub(crate) async fn send(&self, mail: &Queued, letter: &Letter) -> Result<(), SendError> {
        let message = self.message(mail, letter);
        let message = message.map_err(|fault| SendError::Permanent(fault.to_string()))?;
        let late = || format!("the mail was not accepted within {} s", self.deadline.as_secs());
        let sent = timeout(self.deadline, self.deliver(mail, &message)).await;
        sent.unwrap_or_else(|_| Err(SendError::Transient(late())))
    }

    async fn deliver(&self, mail: &Queued, message: &Message) -> Result<(), SendError> {
        match &self.destination {
            Destination::Smtp(server) => {
                server.send(message).await.map_err(|error| failure(&error))
            }
            Destination::Folder(folder) => write(folder, mail, &message.formatted())
                .await
                .map_err(|error| SendError::Transient(error.to_string())),
        }
    }

    fn message(&self, mail: &Queued, letter: &Letter) -> Result<Message, Fault> {
        let to: Address = mail.recipient.parse().map_err(Fault::internal)?;
        // Mail servers may drop a repeated mail by its id. Each attempt of a mail with a link has a
        // new link, so that it needs another id.
        let edition = match mail.kind {
            Kind::Invitation | Kind::PasswordReset => mail.attempts,
            Kind::EmailChange | Kind::ExecutionEnded => 1,
        };
        let id = format!("<{}.{edition}@{}>", mail.id, self.from.email.domain());
        Message::builder()
            .from(self.from.clone())
            .to(Mailbox::new(None, to))
            .subject(&letter.subject)
            .message_id(Some(id))
            .header(AutoSubmitted)
            .multipart(MultiPart::alternative_plain_html(letter.text.clone(), letter.html.clone()))
            .map_err(Fault::internal)
    }
}

/// The header by which programs do not answer a mail of a program (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Classifies a failure. A rejection of the mail itself is permanent; other rejections may be
/// caused by a wrong configuration, which can be fixed.
fn failure(error: &Error) -> SendError {
    let status = error.status();
    // The response of the server may quote the recipient, which must not be logged.
    let cause =
        status.map_or_else(|| error.to_string(), |code| format!("the server returned {code}"));
    let about_mail = status.is_some_and(|code| code.category == Category::MailSystem);
    if error.is_permanent() && about_mail {
        return SendError::Permanent(cause);
    }
    SendError::Transient(cause)
}

/// Writes a file under a temporary name, and renames it when it is complete.
async fn write(folder: &Path, mail: &Queued, message: &[u8]) -> std::io::Result<()> {
    tokio::fs::create_dir_all(folder).await?;
    let draft = folder.join(format!(".{}", mail.id));
    tokio::fs::write(&draft, message).await?;
    tokio::fs::rename(draft, folder.join(format!("{}.eml", mail.id))).await
}
