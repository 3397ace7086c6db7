//! An identity service that receives events of executions and sends mails.

use anyhow::Result;
use assay_auth::Caller;
use assay_events::{Event, Nats, NatsConfig, Relay, Stream, publish};
use assay_proto::{
    ExecutionId,
    events::ExecutionChanged,
    identity::{UpdateUserSettingsRequest, UserSettingsInput},
};
use assay_servers::DataDir;
use assay_testkit::{TestDatabase, eventually, test_dir};
use clap::Parser;
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ended;
use crate::{
    mail_server::{Mailbox, Received},
    world::{Identity, Settings},
};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    nats: NatsConfig,
}

/// An identity service with a mail server, and an execution service with only an outbox.
pub(super) struct World {
    pub(super) identity: Identity,
    pub(super) mailbox: Mailbox,
    pub(super) outbox: PgPool,
    pub(super) nats: Nats,
    _relay: JoinSet<()>,
    _server: assay_servers::Nats,
}

impl World {
    pub(super) async fn new() -> Result<Self> {
        let dir = test_dir()?.join(format!("nats-{}", ExecutionId::new()));
        let server = assay_servers::Nats::start(&DataDir::lock(dir)?, None).await?;
        let mailbox = Mailbox::default();
        let settings = Settings::new().await?.with_administrator().with_nats(server.url());
        let settings = settings.and("smtp-url", &mailbox.serve().await?);
        let settings = settings.and("mail-from", "Assay <assay@example.com>");
        // Mails arrive one after the other, in the order of their turns.
        let settings = settings.and("mail-connections", "1");
        let identity = Identity::start(&settings).await?;

        let schema = assay_identity::migrations();
        let database = TestDatabase::create("identity", &schema).await?;
        let outbox = PgPool::connect_with(database.options).await?;
        let nats = Cli::try_parse_from(["test", "--nats-url", server.url()])?.nats;
        let nats = Nats::connect(&nats, "test").await?;
        let mut relay = JoinSet::new();
        let execution = Relay::new(outbox.clone(), nats.clone(), Stream::of("execution"));
        relay.spawn(execution.run(CancellationToken::new()));
        Ok(Self { identity, mailbox, outbox, nats, _relay: relay, _server: server })
    }

    pub(super) async fn switch(&self, caller: &Caller, on: bool) -> Result<()> {
        let request = UpdateUserSettingsRequest {
            data_version: None,
            changes: Some(UserSettingsInput { mail_when_execution_ends: on }),
            fields: vec!["MailWhenExecutionEnds".to_owned()],
        };
        self.identity.settings().update_user_settings(caller.call(request)).await?;
        Ok(())
    }

    /// Publishes an event of an execution that this user requested.
    pub(super) async fn publish_event(
        &self,
        of: &Caller,
        action: &str,
        execution: &ExecutionChanged,
    ) -> Result<()> {
        let execution = ExecutionChanged {
            action: action.to_owned(),
            requested_by_id: Some(of.user.to_string()),
            ..execution.clone()
        };
        let id = execution.execution_id.clone();
        let event = Event::untyped(of.customer, id, "execution", action, &execution)?;
        let mut tx = assay_database::begin(&self.outbox).await?;
        publish(&mut tx, &event).await?;
        Ok(tx.commit().await?)
    }

    /// Delays all mails until [`World::release`].
    pub(super) async fn hold_back(&self) -> Result<()> {
        for statement in [
            "create function hold_back() returns trigger language plpgsql as
             $$ begin new.next_attempt_at := now() + interval '1 hour'; return new; end $$",
            "create trigger hold_back before insert on mail
             for each row execute function hold_back()",
        ] {
            sqlx::query(statement).execute(&self.identity.db).await?;
        }
        Ok(())
    }

    /// Makes all delayed mails due, in the order in which they were queued.
    pub(super) async fn release(&self) -> Result<()> {
        for statement in [
            "drop trigger hold_back on mail",
            "update mail set next_attempt_at = next_attempt_at - interval '1 hour'",
        ] {
            sqlx::query(statement).execute(&self.identity.db).await?;
        }
        Ok(())
    }

    pub(super) async fn wait_for_queued_mails(&self, count: i64) {
        eventually("mails to be queued", async || {
            let queued = sqlx::query_scalar("select count(*) from mail");
            let queued: i64 = queued.fetch_one(&self.identity.db).await.ok()?;
            (queued == count).then_some(())
        })
        .await;
    }

    /// The mails of all events before: waits for the mail of one more event, which is the last.
    pub(super) async fn mails_before(&self, of: &Caller) -> Result<Vec<Received>> {
        let last = ended("the last one");
        self.publish_event(of, "Completed", &last).await?;
        let all = eventually("the last mail", async || {
            let sent = self.mailbox.sent();
            sent.iter().any(|mail| mail.text.contains("the last one")).then_some(sent)
        })
        .await;
        Ok(all.into_iter().filter(|mail| !mail.text.contains("the last one")).collect())
    }

    /// Waits until this number of events has been consumed.
    pub(super) async fn wait_for_events(&self, events: i64) {
        eventually("events to be consumed", async || {
            let seen = sqlx::query_scalar("select count(*) from inbox where consumer = 'identity'");
            let seen: i64 = seen.fetch_one(&self.identity.db).await.ok()?;
            (seen >= events).then_some(())
        })
        .await;
    }
}
