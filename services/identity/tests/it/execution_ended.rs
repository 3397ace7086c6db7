//! Mails to users whose executions have ended.

mod world;

use anyhow::Result;
use assay_proto::{
    ExecutionId, ExecutionStatistic, ExecutionStatus, TestResult, UserId,
    events::{ExecutionChanged, FailedTestCase},
    identity::{CustomerInput, DeleteUserRequest, UpdateCustomerRequest},
};
use assay_testkit::eventually;
use futures::StreamExt;
use mailin::Response;

use self::world::World;
use crate::world::{ADMIN, readable};

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
async fn a_subscribed_user_gets_one_mail_with_the_results() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    let mut unknown = caller.clone();
    unknown.user = UserId::new();
    world.publish_event(&caller, "Completed", &ended("off by default")).await?;
    world.wait_for_events(1).await;
    world.switch(&caller, true).await?;
    let nightly = ended("Nightly regression");
    for action in ["Requested", "Progressed", "Completed", "Rebuilt", "Archived"] {
        world.publish_event(&caller, action, &nightly).await?;
    }
    world.publish_event(&unknown, "Completed", &ended("of an unknown user")).await?;

    let [mail] = &world.mails_before(&caller).await?[..] else { panic!("expected one mail") };
    assert_eq!(mail.to, [ADMIN]);
    let text = readable(&mail.text);
    for part in [
        "Subject: [Assay] Failed: Nightly regression (12 passed, 1 failed)\r\n",
        "Result:      Failed\r\n",
        "Customer:    Assay\r\n",
        "- LOGIN-2: Log in\r\n",
        &format!("https://www.assay.example/executions/{}\r\n", nightly.execution_id),
        "PUT https://www.assay.example/api/users/current/settings",
        "<td>Nightly regression</td>",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    Ok(())
}

#[tokio::test]
async fn redelivered_events_send_one_mail() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    let mut messages = world.nats.client().subscribe("assay.execution.>").await?;
    world.nats.client().flush().await?;
    world.publish_event(&caller, "Completed", &ended("Nightly")).await?;
    let message = messages.next().await.expect("a message");
    // The mail has left the queue, which would also detect the duplicate.
    world.mailbox.mails(1).await;
    for _ in 0..3 {
        // Without a message id, JetStream does not detect the duplicate.
        world.nats.client().publish(message.subject.clone(), message.payload.clone()).await?;
    }
    assert_eq!(world.mails_before(&caller).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_retried_mail_has_the_same_message_id() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    let later = Response::custom(451, "later".to_owned());
    world.mailbox.refusals.lock().unwrap().extend([later.clone(), later]);
    let nightly = ended("Nightly");
    world.publish_event(&caller, "Completed", &nightly).await?;
    eventually("the mail to be rejected twice", async || {
        let soon = sqlx::query(
            "with due as (update mail set next_attempt_at = now())
             update unfinished_work set next_attempt_at = now()",
        );
        soon.execute(&world.identity.db).await.unwrap();
        world.mailbox.refusals.lock().unwrap().is_empty().then_some(())
    })
    .await;
    eventually("the end of the last attempt", async || {
        let soon = sqlx::query(
            "with due as (update mail set next_attempt_at = now())
             update unfinished_work set next_attempt_at = now()
             where failures = 2 and next_attempt_at is not null",
        );
        let soon = soon.execute(&world.identity.db).await.unwrap();
        (soon.rows_affected() == 1).then_some(())
    })
    .await;
    let [mail] = &world.mails_before(&caller).await?[..] else { panic!("expected one mail") };
    let name = format!("Message-ID: <{}.1@example.com>\r\n", nightly.execution_id);
    assert!(mail.text.contains(&name), "{}", mail.text);
    Ok(())
}

#[tokio::test]
async fn the_mail_of_a_canceled_execution_names_its_status() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    let mut canceled = ended("Nightly");
    canceled.set_status(ExecutionStatus::Canceled);
    canceled.set_result(TestResult::Canceled);
    world.publish_event(&caller, "Canceled", &canceled).await?;
    let [mail] = &world.mails_before(&caller).await?[..] else { panic!("expected one mail") };
    assert!(mail.text.contains("Subject: [Assay] Canceled: Nightly ("), "{}", mail.text);
    Ok(())
}

#[tokio::test]
async fn names_are_escaped_in_headers_and_html() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    let name = "Nightly\r\nBcc: eve@evil.example\r\n\r\n<script>alert(1)</script>";
    world.publish_event(&caller, "Completed", &ended(name)).await?;
    let [mail] = &world.mails_before(&caller).await?[..] else { panic!("expected one mail") };
    assert_eq!(mail.to, [ADMIN]);
    assert!(!mail.text.contains("\r\nBcc:"), "{}", mail.text);
    let html = readable(mail.text.split_once("text/html").expect("a page").1);
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{html}");
    Ok(())
}

/// These users were members with the permission when the event was published.
#[tokio::test]
async fn users_who_left_or_lost_the_read_permission_get_no_mail() -> Result<()> {
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
    world.wait_for_queued_mails(0).await;
    let before = world.mailbox.sent().len();
    world.hold_back().await?;
    for caller in others {
        world.switch(caller, true).await?;
        world.publish_event(caller, "Completed", &ended("Nightly")).await?;
    }
    world.wait_for_queued_mails(4).await;
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
        world.publish_event(caller, "Completed", &ended("Later")).await?;
    }
    assert_eq!(world.mails_before(&admin).await?.len(), before);
    world.wait_for_queued_mails(0).await;
    Ok(())
}

#[tokio::test]
async fn events_older_than_a_day_send_no_mail() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    sqlx::query("alter table outbox alter created_at set default now() - interval '25 hours'")
        .execute(&world.outbox)
        .await?;
    world.publish_event(&caller, "Completed", &ended("yesterday")).await?;
    sqlx::query("alter table outbox alter created_at set default now()")
        .execute(&world.outbox)
        .await?;
    assert!(world.mails_before(&caller).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn mails_with_links_are_sent_before_mails_about_executions() -> Result<()> {
    let world = World::new().await?;
    let caller = world.identity.caller_of(ADMIN).await?;
    world.switch(&caller, true).await?;
    world.hold_back().await?;
    for number in 0..5 {
        world.publish_event(&caller, "Completed", &ended(&format!("Nightly {number}"))).await?;
    }
    world.wait_for_queued_mails(5).await;
    world.identity.prepare_reset(ADMIN, "").await?;
    world.wait_for_queued_mails(6).await;
    world.release().await?;
    let all = world.mailbox.mails(6).await;
    assert!(all[0].text.contains("Subject: Reset your Assay password"), "{}", all[0].text);
    Ok(())
}
