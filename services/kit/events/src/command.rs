//! Commands for operators that `assay` and the services share. Each returns a message about its
//! result.

use std::time::Duration;

use anyhow::bail;
use assay_database::command_options;
use assay_proto::CustomerId;
use assay_runtime::nats::{NatsServers, connect_now};
use async_nats::Client;
use clap::{Args, Subcommand};
use secrecy::SecretString;
use sqlx::PgPool;

use crate::{
    Actions, Replayed, Since, Sources, Stream, SubscriberFilter, Subscribers, Word, replay,
    replay::duration,
};

/// Publish events again that NATS has lost
#[derive(Args, Clone, Copy, Debug)]
pub struct Replay {
    /// Start of the range: a duration ago (90m, 2h, 3d), or a time (2026-11-20T23:00:00Z)
    #[arg(long)]
    since: Since,
}

impl Replay {
    /// Publishes events of the service with this database again.
    pub async fn run(self, database_url: &SecretString) -> anyhow::Result<String> {
        let db = PgPool::connect_with(command_options(database_url)?).await?;
        let replayed = replay(&db, self.since).await?;
        db.close().await;
        Ok(replayed.to_string())
    }
}

impl std::fmt::Display for Replayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { events, since, oldest, waiting } = self;
        match events {
            0 => write!(f, "nothing was published since {since}"),
            1 => write!(f, "1 event published since {since} will be published again"),
            _ => write!(f, "{events} events published since {since} will be published again"),
        }?;
        if *waiting > 0 {
            write!(f, "; {waiting} more have not been published yet")?;
        }
        match oldest {
            Some(oldest) if oldest > since => write!(
                f,
                "; the oldest event that is kept was published at {oldest}, earlier ones are gone \
                 (ASSAY_EVENT_RETENTION_DAYS)"
            ),
            _ => Ok(()),
        }
    }
}

/// Commands that act on NATS.
#[derive(Clone, Debug, Subcommand)]
pub enum NatsCommand {
    /// List, add or remove subscribers: other systems that read notifications
    #[command(subcommand)]
    Subscribers(SubscriberCommand),
}

#[derive(Clone, Debug, Subcommand)]
pub enum SubscriberCommand {
    /// List subscribers and their backlog
    List,
    /// Add a subscriber, which receives all stored notifications and new ones
    Add {
        /// Name of the subscriber and of its durable consumer
        #[arg(value_parser = name)]
        name: String,
        /// Only notifications of the customer with this id
        #[arg(long, value_parser = customer)]
        customer: Option<String>,
        /// Only notifications of Assay with this source, such as `TestCase`
        #[arg(long)]
        source: Option<String>,
        /// Only notifications of Assay with this action, such as `Finished`
        #[arg(long)]
        action: Option<String>,
        /// Only notifications that clients have created; source and action are then those that they choose
        #[arg(long)]
        of_clients: bool,
        /// Maximum number of unacknowledged notifications; with more than one, the order may change
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
        at_once: u16,
        /// Time after which an unacknowledged notification is redelivered
        #[arg(long, default_value = "30s", value_parser = duration)]
        patience: Duration,
    },
    /// Remove a subscriber
    Remove {
        /// Name of the subscriber
        #[arg(value_parser = name)]
        name: String,
    },
}

impl NatsCommand {
    pub async fn run(self, servers: &NatsServers) -> anyhow::Result<String> {
        let nats = connect_now(servers, "operator").await?;
        match self {
            Self::Subscribers(command) => command.run(nats).await,
        }
    }
}

impl SubscriberCommand {
    async fn run(self, nats: Client) -> anyhow::Result<String> {
        let subscribers = Subscribers::of(Stream::of("notifications"), nats);
        match self {
            Self::List => {
                let all = subscribers.list().await?;
                let lines = all.iter().map(|one| {
                    let (name, filter) = (&one.name, &one.filter);
                    format!(
                        "{name}  {filter}  backlog {}, unacknowledged {}",
                        one.backlog, one.pending
                    )
                });
                let lines: Vec<_> = lines.collect();
                let none = || "No subscribers found".to_owned();
                Ok(if lines.is_empty() { none() } else { lines.join("\n") })
            }
            Self::Add { name, customer, source, action, of_clients, at_once, patience } => {
                let is_known = |word: Word| of_clients || matches!(word, Word::Known(_));
                if let Some(word) = source.as_deref()
                    && !is_known(Sources::find(word))
                {
                    bail!("--source {}", Sources::problem(word));
                }
                if let Some(word) = action.as_deref()
                    && !is_known(Actions::of(source.as_deref()).find(word))
                {
                    bail!("--action {}", Actions::of(source.as_deref()).problem(word));
                }
                let filter = SubscriberFilter { customer, of_clients, noun: source, action };
                let added = subscribers.add(&name, &filter, at_once, patience).await?;
                Ok(format!("Added {name}, which receives messages on {}", added.filter))
            }
            Self::Remove { name } => {
                subscribers.remove(&name).await?;
                Ok(format!("Removed {name}"))
            }
        }
    }
}

/// Checks the id of a customer.
fn customer(text: &str) -> Result<String, String> {
    let id = CustomerId::from_path(text).map_err(|_| "must be the id of a customer, a UUID")?;
    Ok(id.to_string())
}

/// Parses a name that is one token of a subject.
fn name(text: &str) -> Result<String, String> {
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(safe) {
        return Ok(text.to_owned());
    }
    Err("must consist of letters, digits, - and _".to_owned())
}
