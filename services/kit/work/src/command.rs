//! The command for operators that lists, retries and drops dead letters.

use anyhow::{Context as _, Result, ensure};
use assay_database::{begin, command_options};
use assay_proto::CustomerId;
use clap::{Args, Subcommand};
use secrecy::SecretString;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{Work, letters::DeadLetter};

/// A service with the kinds of its work and the URL of its database.
pub type OfService<'a> = (&'a str, &'static [Work], &'a SecretString);

/// Commands that act on work in the background.
#[derive(Clone, Debug, Subcommand)]
pub enum WorkCommand {
    /// List, retry or drop dead letters: work in the background that was given up, such as mails or
    /// events
    #[command(subcommand)]
    DeadLetters(DeadLetterCommand),
}

#[derive(Clone, Debug, Subcommand)]
pub enum DeadLetterCommand {
    /// List dead letters with their reasons, oldest first
    List {
        /// Only dead letters of this kind, such as `mail` or `event`
        #[arg(long)]
        kind: Option<String>,
        /// Only dead letters of the customer with this id
        #[arg(long)]
        customer: Option<Uuid>,
    },
    /// Attempt the work again, as often as new work; for instance after fixing the cause
    Retry(Selected),
    /// Drop the work: it is not done
    Drop(Selected),
}

#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct Selected {
    /// Ids of dead letters, as listed
    ids: Vec<String>,
    /// All dead letters of this kind, such as `mail` or `event`
    #[arg(long)]
    kind: Option<String>,
    /// All dead letters
    #[arg(long)]
    all: bool,
}

impl WorkCommand {
    /// Runs the command for services, and returns a message about the result.
    pub async fn run(self, services: &[OfService<'_>]) -> Result<String> {
        let Self::DeadLetters(command) = self;
        command.run(services).await
    }
}

impl DeadLetterCommand {
    async fn run(self, services: &[OfService<'_>]) -> Result<String> {
        let kind = match &self {
            Self::List { kind, .. }
            | Self::Retry(Selected { kind, .. })
            | Self::Drop(Selected { kind, .. }) => kind,
        };
        check_kind(services, kind.as_deref())?;
        if let Self::Retry(Selected { ids, .. }) | Self::Drop(Selected { ids, .. }) = &self {
            check_ids(services, ids).await?;
        }
        let mut count = 0;
        for service in services {
            count += self.run_for(service).await.with_context(|| service.0.to_owned())?;
        }
        let done = match self {
            Self::List { .. } => "",
            Self::Retry(_) => " will be attempted again",
            Self::Drop(_) => " dropped",
        };
        Ok(match count {
            0 => "No dead letters found".to_owned(),
            1 => format!("1 dead letter{done}"),
            _ => format!("{count} dead letters{done}"),
        })
    }

    /// Runs the command for one service, and returns the number of dead letters. Each kind has a transaction of its own,
    /// so that rows of one kind are not locked while others are awaited; a list, which may be read slowly, has none.
    async fn run_for(&self, (service, works, url): &OfService<'_>) -> Result<u64> {
        let db = PgPool::connect_with(command_options(url)?).await?;
        let mut count = 0;
        for work in *works {
            let prefix = format!("{service}/{}/", work.kind);
            count += match self {
                Self::List { kind, customer } if selects(kind.as_deref(), work) => {
                    let show = |letter| println!("{}", line(&prefix, &letter));
                    work.list(&db, customer.map(CustomerId), show).await?
                }
                Self::Retry(selected) if selected.selects(work) => {
                    let mut tx = begin(&db).await?;
                    let retried = work.retry(&mut tx, selected.ids(&prefix).as_deref()).await?;
                    tx.commit().await?;
                    retried
                }
                Self::Drop(selected) if selected.selects(work) => {
                    let mut tx = begin(&db).await?;
                    let dropped = work.drop(&mut tx, selected.ids(&prefix).as_deref()).await?;
                    tx.commit().await?;
                    dropped
                }
                Self::List { .. } | Self::Retry(_) | Self::Drop(_) => 0,
            };
        }
        db.close().await;
        Ok(count)
    }
}

impl Selected {
    fn selects(&self, work: &Work) -> bool {
        selects(self.kind.as_deref(), work)
    }

    /// Returns the ids of a kind, or `None` for all.
    fn ids(&self, prefix: &str) -> Option<Vec<String>> {
        let is_listed = self.kind.is_none() && !self.all;
        is_listed.then(|| ids_of(&self.ids, prefix))
    }
}

fn selects(kind: Option<&str>, work: &Work) -> bool {
    kind.is_none_or(|kind| kind == work.kind)
}

fn ids_of(ids: &[String], prefix: &str) -> Vec<String> {
    ids.iter().filter_map(|id| id.strip_prefix(prefix)).map(str::to_owned).collect()
}

/// Refuses a kind that no service has.
fn check_kind(services: &[OfService<'_>], kind: Option<&str>) -> Result<()> {
    let kinds = || services.iter().flat_map(|(_, works, _)| works.iter());
    let Some(kind) = kind else { return Ok(()) };
    let mut names: Vec<_> = kinds().map(|work| work.kind).collect();
    names.sort_unstable();
    names.dedup();
    ensure!(names.contains(&kind), "no such kind: {kind}; the kinds are {}", names.join(", "));
    Ok(())
}

/// Refuses ids if one of them is not that of a dead letter, so that nothing is done then.
async fn check_ids(services: &[OfService<'_>], ids: &[String]) -> Result<()> {
    let mut unknown: Vec<String> = ids.to_vec();
    for (service, works, url) in services {
        let db = PgPool::connect_with(command_options(url)?)
            .await
            .with_context(|| (*service).to_owned())?;
        for work in *works {
            let prefix = format!("{service}/{}/", work.kind);
            let named = ids_of(ids, &prefix);
            let missing = work.missing(&db, &named).await?;
            unknown.retain(|id| {
                id.strip_prefix(&prefix)
                    .is_none_or(|id| missing.iter().any(|missing| missing == id))
            });
        }
        db.close().await;
    }
    ensure!(unknown.is_empty(), "no such dead letter: {}", unknown.join(", "));
    Ok(())
}

fn line(prefix: &str, letter: &DeadLetter) -> String {
    let DeadLetter { id, customer_id, about, attempts, reason, given_up_at } = letter;
    let customer = Some(customer_id.0).filter(|id| !id.is_nil());
    let customer = customer.map_or_else(|| "none".to_owned(), |id| id.to_string());
    let about = about.as_ref().map(|about| format!(", {about}")).unwrap_or_default();
    let reason = reason.as_deref().unwrap_or("unknown reason");
    format!(
        "{prefix}{id}  {given_up_at}  customer {customer}, attempts {attempts}{about}: {reason}"
    )
}
