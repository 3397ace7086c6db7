//! What an operator does about events: the commands that `assay` and the services have in common.
//! Each says what it has done.

use std::time::Duration;

use assay_runtime::{
    connect_options,
    nats::{NatsServers, connect_now},
};
use async_nats::Client;
use clap::{Args, Subcommand};
use secrecy::SecretString;
use sqlx::PgPool;

use crate::{
    DeadLetter, DeadLetters, Interest, Replayed, Since, Stream, Subscribers, replay,
    replay::duration,
};

/// Publishes again what the broker has lost.
#[derive(Args, Clone, Copy, Debug)]
pub struct Replay {
    /// From when on: a while ago (90m, 2h, 3d), or a time (2026-11-20T23:00:00Z)
    #[arg(long)]
    since: Since,
}

impl Replay {
    /// With the events of the service that has this database.
    pub async fn carry_out(self, database_url: &SecretString) -> anyhow::Result<String> {
        let db = PgPool::connect_with(connect_options(database_url)?).await?;
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
            1 => write!(f, "1 event that was published since {since} is published again"),
            _ => write!(f, "{events} events that were published since {since} are published again"),
        }?;
        if *waiting > 0 {
            write!(f, "; {waiting} wait to be published anyway")?;
        }
        match oldest {
            Some(oldest) if oldest > since => write!(
                f,
                "; the oldest that is kept was published at {oldest}: what was before, if anything, \
                 is gone (ASSAY_EVENT_RETENTION_DAYS)"
            ),
            _ => Ok(()),
        }
    }
}

/// What is done at NATS.
#[derive(Clone, Debug, Subcommand)]
pub enum AtNats {
    /// Events that a service could not apply: shown, delivered again, or dropped
    #[command(subcommand)]
    DeadLetters(OfDeadLetters),
    /// Other systems that read notifications: shown, added or removed
    #[command(subcommand)]
    Subscribers(OfSubscribers),
}

#[derive(Clone, Debug, Subcommand)]
pub enum OfDeadLetters {
    /// Shows them, the oldest first, with the reason of each
    List {
        /// Only those of one consumer, such as `catalog`
        #[arg(long, value_parser = name)]
        consumer: Option<String>,
    },
    /// Deliver them again to the consumers that could not apply them, once the cause is removed
    Replay(Which),
    /// Removes them for good
    Drop(Which),
}

#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub struct Which {
    /// Those with these ids
    ids: Vec<u64>,
    /// Those of one consumer, such as `catalog`
    #[arg(long, value_parser = name)]
    consumer: Option<String>,
    /// All of them
    #[arg(long)]
    all: bool,
}

#[derive(Clone, Debug, Subcommand)]
pub enum OfSubscribers {
    /// Shows who reads notifications, and how many each has still before it
    List,
    /// Adds a subscriber, which gets all notifications that are kept and those to come
    Add {
        /// What it is called: its durable consumer
        #[arg(value_parser = name)]
        name: String,
        /// Only those of one customer, by its id
        #[arg(long)]
        customer: Option<String>,
        /// Only those with this source, such as `TestCase`
        #[arg(long)]
        source: Option<String>,
        /// Only those with this action, such as `Finished`
        #[arg(long)]
        action: Option<String>,
        /// How many it may have in hand at once; with more than one they may come out of order
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
        at_once: u16,
        /// How long it may take with one before that comes again
        #[arg(long, default_value = "30s", value_parser = duration)]
        patience: Duration,
    },
    /// Removes a subscriber
    Remove {
        #[arg(value_parser = name)]
        name: String,
    },
}

impl AtNats {
    pub async fn carry_out(self, servers: &NatsServers) -> anyhow::Result<String> {
        let nats = connect_now(servers, "operator").await?;
        match self {
            Self::DeadLetters(command) => command.carry_out(nats).await,
            Self::Subscribers(command) => command.carry_out(nats).await,
        }
    }
}

impl OfDeadLetters {
    async fn carry_out(self, nats: Client) -> anyhow::Result<String> {
        let letters = DeadLetters::open(nats).await?;
        let (count, done) = match self {
            Self::List { consumer } => {
                let which = consumer.map_or(crate::Which::All, crate::Which::Of);
                (letters.list(&which, |letter| println!("{}", line(&letter))).await?, "")
            }
            Self::Replay(which) => (letters.replay(&which.into()).await?, " delivered again"),
            Self::Drop(which) => (letters.drop(&which.into()).await?, " dropped"),
        };
        Ok(match count {
            0 => "There are no such dead letters".to_owned(),
            1 => format!("1 dead letter{done}"),
            _ => format!("{count} dead letters{done}"),
        })
    }
}

fn line(letter: &DeadLetter) -> String {
    let DeadLetter { id, stream, consumer, subject, tries, reason, time, event } = letter;
    let event = event.map_or_else(|| "none".to_owned(), |event| event.to_string());
    format!(
        "{id}  {time}  stream {stream}, consumer {consumer}, tries {tries}, event {event}, \
         subject {subject}: {reason}"
    )
}

impl From<Which> for crate::Which {
    fn from(which: Which) -> Self {
        match which {
            Which { consumer: Some(consumer), .. } => Self::Of(consumer),
            Which { all: true, .. } => Self::All,
            Which { ids, .. } => Self::These(ids),
        }
    }
}

impl OfSubscribers {
    async fn carry_out(self, nats: Client) -> anyhow::Result<String> {
        let subscribers = Subscribers::of(Stream::of("notifications"), nats);
        match self {
            Self::List => {
                let all = subscribers.list().await?;
                let lines = all.iter().map(|one| {
                    let (name, filter) = (&one.name, &one.filter);
                    format!("{name}  {filter}  {} to come, {} in hand", one.behind, one.in_hand)
                });
                let lines: Vec<_> = lines.collect();
                let none = || "There are no subscribers".to_owned();
                Ok(if lines.is_empty() { none() } else { lines.join("\n") })
            }
            Self::Add { name, customer, source, action, at_once, patience } => {
                let interest = Interest { customer, noun: source, action };
                let added = subscribers.add(&name, &interest, at_once, patience).await?;
                Ok(format!("{name} gets what is published on {}", added.filter))
            }
            Self::Remove { name } => {
                subscribers.remove(&name).await?;
                Ok(format!("{name} gets nothing any more"))
            }
        }
    }
}

/// A name that is one token of a subject.
fn name(text: &str) -> Result<String, String> {
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !text.is_empty() && text.chars().all(safe) {
        return Ok(text.to_owned());
    }
    Err("expected letters, digits, - and _ only".to_owned())
}
