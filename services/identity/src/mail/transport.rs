//! How mails go out: by SMTP, or into a folder.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use assay_proto::Fault;
use lettre::{
    Address, AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor,
    message::{Mailbox, MultiPart},
    transport::smtp::{self, response::Category},
};
use secrecy::{ExposeSecret, SecretString};

use super::{Kind, message::Letter, store::Queued};

/// How long an SMTP server may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who mails in a folder are from.
const NOBODY: &str = "Assay <assay@localhost>";

/// How mails go out.
pub(crate) struct Transport {
    from: Mailbox,
    way: Way,
}

enum Way {
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
    Folder(PathBuf),
}

/// Why a mail was not sent.
pub(super) enum SendError {
    /// It may be sent yet.
    Passing(String),
    /// The server will not have it.
    Refused(String),
}

impl Transport {
    /// By SMTP if there is a URL, else into the folder.
    pub(crate) fn new(
        smtp_url: Option<&SecretString>,
        from: Option<&str>,
        folder: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let way = match (smtp_url, folder) {
            (Some(url), _) => Way::Smtp(smtp(url)?),
            (None, Some(folder)) => Way::Folder(folder.to_owned()),
            (None, None) => bail!("ASSAY_SMTP_URL or ASSAY_MAIL_DIR has to say how mails go out"),
        };
        let from = match (from, &way) {
            (Some(from), _) => from,
            (None, Way::Folder(_)) => NOBODY,
            (None, Way::Smtp(_)) => bail!("ASSAY_MAIL_FROM has to say who mails are from"),
        };
        Ok(Self { from: from.parse().context("ASSAY_MAIL_FROM")?, way })
    }

    pub(super) async fn send(&self, mail: &Queued, letter: &Letter) -> Result<(), SendError> {
        let message = self.message(mail, letter);
        let message = message.map_err(|fault| SendError::Refused(fault.to_string()))?;
        match &self.way {
            Way::Smtp(server) => {
                server.send(message).await.map(drop).map_err(|error| failure(&error))
            }
            Way::Folder(folder) => write(folder, mail, &message.formatted())
                .await
                .map_err(|error| SendError::Passing(error.to_string())),
        }
    }

    fn message(&self, mail: &Queued, letter: &Letter) -> Result<Message, Fault> {
        let to: Address = mail.recipient.parse().map_err(Fault::internal)?;
        // Of the same mail, sent again because it was not known to have been, only one is kept by
        // those who look at this. A link is another one each time.
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
            .multipart(MultiPart::alternative_plain_html(letter.text.clone(), letter.html.clone()))
            .map_err(Fault::internal)
    }
}

fn smtp(url: &SecretString) -> anyhow::Result<AsyncSmtpTransport<Tokio1Executor>> {
    // The cause is left out on purpose: it may quote the URL and with it the password.
    let server = AsyncSmtpTransport::<Tokio1Executor>::from_url(url.expose_secret())
        .map_err(|_| anyhow::anyhow!("ASSAY_SMTP_URL is not the URL of an SMTP server"))?;
    Ok(server.timeout(Some(PATIENCE)).build())
}

/// A server that refuses this mail will go on doing so; one that refuses us may be set up wrongly,
/// which somebody will mend.
fn failure(error: &smtp::Error) -> SendError {
    let status = error.status();
    // What the server says may quote the recipient, who is nobody's business.
    let cause = status.map_or_else(|| error.to_string(), |code| format!("it answered {code}"));
    let about_mail = status.is_some_and(|code| code.category == Category::MailSystem);
    if error.is_permanent() && about_mail {
        return SendError::Refused(cause);
    }
    SendError::Passing(cause)
}

/// Writes a file that is whole as soon as it has its name.
async fn write(folder: &Path, mail: &Queued, message: &[u8]) -> std::io::Result<()> {
    tokio::fs::create_dir_all(folder).await?;
    let draft = folder.join(format!(".{}", mail.id));
    tokio::fs::write(&draft, message).await?;
    tokio::fs::rename(draft, folder.join(format!("{}.eml", mail.id))).await
}
