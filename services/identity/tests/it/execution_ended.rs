//! Mails to those whose executions have ended.

use anyhow::Result;
use assay_auth::Caller;
use assay_events::{Event, Nats, NatsConfig, Relay, Stream, publish, unpublished};
use assay_proto::{
    ExecutionId, ExecutionStatistic, ExecutionStatus, TestResult, UserId,
    events::{ExecutionChanged, FailedTestCase},
    identity::{
        CustomerInput, DeleteUserRequest, UpdateCustomerRequest, UpdateUserSettingsRequest,
        UserSettingsInput,
    },
};
use assay_servers::DataDir;
use assay_testkit::{TestDatabase, eventually, test_dir};
use clap::Parser;
use futures::StreamExt;
use mailin::Response;
use sqlx::PgPool;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    mail::{Mailbox, Received},
    world::{ADMIN, Identity, Settings, readable},
};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    nats: NatsConfig,
}

/// An identity service with a mail server, and an execution service that has only its outbox.
struct World {
    identity: Identity,
    mailbox: Mailbox,
    outbox: PgPool,
    nats: Nats,
    _relay: JoinSet<()>,
    _server: assay_servers::Nats,
}

impl World {
    async fn new() -> Result<Self> {
        let dir = test_dir()?.join(format!("nats-{}", ExecutionId::new()));
        let server = assay_servers::Nats::start(&DataDir::lock(dir)?, None).await?;
        let mailbox = Mailbox::default();
        let settings = Settings::new().await?.with_administrator().with_nats(server.url());
        let settings = settings.and("smtp-url", &mailbox.serve().await?);
        let settings = settings.and("mail-from", "Assay <assay@example.com>");
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

    async fn switch(&self, caller: &Caller, on: bool) -> Result<()> {
        let request = UpdateUserSettingsRequest {
            data_version: None,
            changes: Some(UserSettingsInput { mail_when_execution_ends: on }),
            fields: vec!["MailWhenExecutionEnds".to_owned()],
        };
        self.identity.settings().update_user_settings(caller.call(request)).await?;
        Ok(())
    }

    /// As the execution service tells of an execution of that user.
    async fn tell(&self, of: &Caller, action: &str, execution: &ExecutionChanged) -> Result<()> {
        let execution = ExecutionChanged {
            action: action.to_owned(),
            requested_by_id: Some(of.user.to_string()),
            ..execution.clone()
        };
        let id = execution.execution_id.clone();
        let event = Event::new(of.customer, id, "execution", action, &execution)?;
        let mut tx = self.outbox.begin().await?;
        publish(&mut tx, &event).await?;
        Ok(tx.commit().await?)
    }

    /// Has no mail go out until [`World::release`].
    async fn hold_back(&self) -> Result<()> {
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

    /// Has all mails go out that were held back, if their order is that of their coming.
    async fn release(&self) -> Result<()> {
        for statement in [
            "drop trigger hold_back on mail",
            "update mail set next_attempt_at = next_attempt_at - interval '1 hour'",
        ] {
            sqlx::query(statement).execute(&self.identity.db).await?;
        }
        Ok(())
    }

    async fn has_queued(&self, count: i64) {
        eventually("mails are queued", async || {
            let queued = sqlx::query_scalar("select count(*) from mail");
            let queued: i64 = queued.fetch_one(&self.identity.db).await.ok()?;
            (queued == count).then_some(())
        })
        .await;
    }

    /// Waits until a mail is there that is told of now, which all those before it have preceded:
    /// the mails that they have caused.
    async fn mails_before(&self, of: &Caller) -> Result<Vec<Received>> {
        let last = ended("the last one");
        self.tell(of, "Completed", &last).await?;
        let all = eventually("the last mail", async || {
            let sent = self.mailbox.sent();
            sent.iter().any(|mail| mail.text.contains("the last one")).then_some(sent)
        })
        .await;
        Ok(all.into_iter().filter(|mail| !mail.text.contains("the last one")).collect())
    }
}

fn ended(set: &str) -> ExecutionChanged {
    ExecutionChanged {
        execution_id: ExecutionId::new().to_string(),
        project_id: "0190c7f4-0000-7000-8000-000000000001".to_owned(),
        status: ExecutionStatus::Completed.into(),
        result: TestResult::Failed.into(),
        test_set_name: Some(set.to_owned()),
        statistic: Some(ExecutionStatistic {
            test_cases_passed: 12,
            test_cases_failed: 1,
            ..ExecutionStatistic::default()
        }),
        failed_test_cases: vec![FailedTestCase {
            identifier: "LOGIN-2".to_owned(),
            name: "Log in".to_owned(),
            result: TestResult::Failed.into(),
            ..FailedTestCase::default()
        }],
        ..ExecutionChanged::default()
    }
}

#[tokio::test]
async fn who_wants_to_know_gets_one_mail_with_the_facts() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    let mut nobody = caller.clone();
    nobody.user = UserId::new();
    world.tell(&caller, "Completed", &ended("off by default")).await?;
    eventually("it was told", async || (unpublished(&world.outbox).await.ok()? == 0).then_some(()))
        .await;
    has_seen(&world, 1).await;
    world.switch(&caller, true).await?;
    let nightly = ended("Nightly regression");
    for action in ["Requested", "Progressed", "Completed", "Rebuilt", "Archived"] {
        world.tell(&caller, action, &nightly).await?;
    }
    world.tell(&nobody, "Completed", &ended("nobody's")).await?;

    let [mail] = &world.mails_before(&caller).await?[..] else { panic!("not one mail") };
    assert_eq!(mail.to, [ADMIN]);
    let text = readable(&mail.text);
    for part in [
        "Subject: [Assay] Failed: Nightly regression (12 passed, 1 failed)\r\n",
        "Result:      Failed\r\n",
        "Customer:    Assay\r\n",
        "- LOGIN-2: Log in\r\n",
        &format!(
            "https://www.assay.example/api/projects/{}/executions/{}\r\n",
            nightly.project_id, nightly.execution_id
        ),
        "PUT https://www.assay.example/api/users/current/settings",
        "<td>Nightly regression</td>",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    Ok(())
}

#[tokio::test]
async fn an_end_that_is_told_again_and_again_is_one_mail() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    let mut told = world.nats.client().subscribe("assay.execution.>").await?;
    world.nats.client().flush().await?;
    world.tell(&caller, "Completed", &ended("Nightly")).await?;
    let message = told.next().await.expect("a message");
    // Not in the queue any more, which would know it, too.
    world.mailbox.mails(1).await;
    for _ in 0..3 {
        // Without an id, JetStream does not know it again.
        world.nats.client().publish(message.subject.clone(), message.payload.clone()).await?;
    }
    assert_eq!(world.mails_before(&caller).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_mail_that_is_tried_again_arrives_once_under_one_name() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    let later = Response::custom(451, "later".to_owned());
    world.mailbox.refusals.lock().unwrap().extend([later.clone(), later]);
    let nightly = ended("Nightly");
    world.tell(&caller, "Completed", &nightly).await?;
    for left in [1, 0] {
        eventually("it was refused", async || {
            (world.mailbox.refusals.lock().unwrap().len() == left).then_some(())
        })
        .await;
        sqlx::query("update mail set next_attempt_at = now()").execute(&world.identity.db).await?;
    }
    let [mail] = &world.mails_before(&caller).await?[..] else { panic!("not one mail") };
    let name = format!("Message-ID: <{}.1@example.com>\r\n", nightly.execution_id);
    assert!(mail.text.contains(&name), "{}", mail.text);
    Ok(())
}

#[tokio::test]
async fn a_canceled_execution_is_told_of_as_that() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    let mut canceled = ended("Nightly");
    canceled.set_status(ExecutionStatus::Canceled);
    canceled.set_result(TestResult::Canceled);
    world.tell(&caller, "Canceled", &canceled).await?;
    let [mail] = &world.mails_before(&caller).await?[..] else { panic!("not one mail") };
    assert!(mail.text.contains("Subject: [Assay] Canceled: Nightly ("), "{}", mail.text);
    Ok(())
}

#[tokio::test]
async fn no_name_becomes_a_header_or_markup() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    let name = "Nightly\r\nBcc: eve@evil.example\r\n\r\n<script>alert(1)</script>";
    world.tell(&caller, "Completed", &ended(name)).await?;
    let [mail] = &world.mails_before(&caller).await?[..] else { panic!("not one mail") };
    assert_eq!(mail.to, [ADMIN]);
    assert!(!mail.text.contains("\r\nBcc:"), "{}", mail.text);
    let html = readable(mail.text.split_once("text/html").expect("a page").1);
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{html}");
    Ok(())
}

/// Those who may not know any more when it is their turn: they were members when it was told.
#[tokio::test]
async fn who_has_left_or_may_not_read_gets_no_mail() -> Result<()> {
    let world = World::new().await?;
    let identity = &world.identity;
    let admin = identity.caller_of(ADMIN).await?;
    world.switch(&admin, true).await?;
    let (visitor, closing) = (identity.visitor("acme").await?, identity.visitor("closing").await?);
    let left = identity.member(&visitor, "left@example.com", "Testers").await?;
    let barred = identity.member(&visitor, "barred@example.com", "Viewers").await?;
    let closed = identity.member(&closing, "closed@example.com", "Testers").await?;
    let changed_mind = identity.member(&visitor, "changed@example.com", "Testers").await?;
    let others = [&left, &barred, &closed, &changed_mind];
    world.has_queued(0).await;
    let before = world.mailbox.sent().len();
    world.hold_back().await?;
    for caller in others {
        world.switch(caller, true).await?;
        world.tell(caller, "Completed", &ended("Nightly")).await?;
    }
    world.has_queued(4).await;
    let request = DeleteUserRequest { id: left.user.to_string() };
    identity.users().delete_user(visitor.call(request)).await?;
    sqlx::query("update user_group set usage_permission = 'Login' where name = 'Viewers'")
        .execute(&identity.db)
        .await?;
    let request = UpdateCustomerRequest {
        id: closing.customer.to_string(),
        changes: Some(CustomerInput { archived: true, ..CustomerInput::default() }),
        fields: vec!["Archived".to_owned()],
        ..UpdateCustomerRequest::default()
    };
    identity.customers().update_customer(admin.call(request)).await?;
    world.switch(&changed_mind, false).await?;
    world.release().await?;
    for caller in others {
        world.tell(caller, "Completed", &ended("Later")).await?;
    }
    assert_eq!(world.mails_before(&admin).await?.len(), before);
    world.has_queued(0).await;
    Ok(())
}

#[tokio::test]
async fn what_ended_yesterday_is_no_news() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    sqlx::query("alter table outbox alter created_at set default now() - interval '25 hours'")
        .execute(&world.outbox)
        .await?;
    world.tell(&caller, "Completed", &ended("yesterday")).await?;
    sqlx::query("alter table outbox alter created_at set default now()")
        .execute(&world.outbox)
        .await?;
    assert!(world.mails_before(&caller).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_link_waits_for_no_reports() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    world.hold_back().await?;
    for number in 0..5 {
        world.tell(&caller, "Completed", &ended(&format!("Nightly {number}"))).await?;
    }
    world.has_queued(5).await;
    world.identity.prepare_reset(ADMIN, "").await?;
    world.has_queued(6).await;
    world.release().await?;
    let all = world.mailbox.mails(6).await;
    assert!(all[0].text.contains("Subject: Your new password"), "{}", all[0].text);
    Ok(())
}

async fn has_seen(world: &World, events: i64) {
    eventually("events are consumed", async || {
        let seen = sqlx::query_scalar("select count(*) from inbox where consumer = 'identity'");
        let seen: i64 = seen.fetch_one(&world.identity.db).await.ok()?;
        (seen >= events).then_some(())
    })
    .await;
}
