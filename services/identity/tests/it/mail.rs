//! Mails sent by SMTP.

use anyhow::Result;
use assay_testkit::eventually;
use assay_work::Work;
use mailin::{Response, response};
use uuid::Uuid;

use crate::mail_server::Mailbox;
use crate::world::{ADMIN, Identity, Settings, link, readable};

pub(crate) async fn start(mailbox: &Mailbox) -> Result<Identity> {
    let settings = Settings::new().await?.with_administrator();
    let settings = settings.and("smtp-url", &mailbox.serve().await?);
    Identity::start(&settings.and("mail-from", "Assay <assay@example.com>")).await
}

fn mails() -> &'static Work {
    assay_identity::WORK.iter().find(|work| work.kind == "mail").unwrap()
}

async fn queued(identity: &Identity) -> Result<i64> {
    Ok(sqlx::query_scalar("select count(*) from mail").fetch_one(&identity.db).await?)
}

#[tokio::test]
async fn a_mail_is_sent_as_text_and_html() -> Result<()> {
    let mailbox = Mailbox::default();
    let identity = start(&mailbox).await?;
    identity.prepare_reset(ADMIN, "").await?;
    let [mail] = &mailbox.mails(1).await[..] else { panic!("expected one mail") };
    assert_eq!((mail.from.as_str(), &mail.to[..]), ("assay@example.com", &[ADMIN.to_owned()][..]));
    for part in [
        "From: Assay <assay@example.com>\r\n",
        "Subject: Reset your Assay password\r\n",
        "Date: ",
        "Message-ID: <",
        "Auto-Submitted: auto-generated\r\n",
        "MIME-Version: 1.0\r\n",
        "Content-Type: multipart/alternative;",
        "Content-Type: text/plain; charset=utf-8\r\n",
        "Content-Type: text/html; charset=utf-8\r\n",
    ] {
        assert!(mail.text.contains(part), "{part} is missing in {}", mail.text);
    }
    let (_, token) = link(&mail.text)?;
    assert_eq!(
        readable(&mail.text).matches(&token).count(),
        3,
        "the link is once in the text and twice in the HTML"
    );
    identity.reset(&token, "a password that is new").await?;
    assert!(!identity.mail_dir.exists(), "the mail was also written to a file");
    Ok(())
}

#[tokio::test]
async fn input_of_clients_cannot_inject_headers_or_recipients() -> Result<()> {
    let mailbox = Mailbox::default();
    let identity = start(&mailbox).await?;
    let visitor = identity.visitor("acme").await?;
    sqlx::query("update customer set name = $1 where subdomain = 'acme'")
        .bind("Acme\r\nBcc: eve@evil.example\r\n\r\n<script>alert(1)</script>")
        .execute(&identity.db)
        .await?;
    for email in [
        "grace@example.com,eve@evil.example",
        "grace@example.com\r\nBcc: eve@evil.example",
        "<grace@example.com>\r\nRCPT TO:<eve@evil.example>",
        "\"grace\\\" <eve@evil.example>, \"@example.com",
    ] {
        identity.prepare_reset(email, "eve.example\r\nBcc: eve@evil.example").await?;
        identity.user(&visitor, email, "Testers").await.unwrap_err();
    }
    identity.user(&visitor, "grace@example.com", "Testers").await?;
    let [mail] = &mailbox.mails(1).await[..] else { panic!("expected one mail") };
    assert_eq!(mail.to, ["grace@example.com"]);
    assert!(!mail.text.contains("\r\nBcc:"), "{}", mail.text);
    let html = mail.text.split_once("text/html").expect("a page").1;
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"), "{html}");
    assert_eq!(link(&mail.text)?.0, "https://www.assay.example");
    eventually("nothing queued", async || (queued(&identity).await.ok()? == 0).then_some(())).await;
    Ok(())
}

#[tokio::test]
async fn a_mail_with_a_temporary_error_is_retried() -> Result<()> {
    let mailbox = Mailbox::default();
    mailbox.refusals.lock().unwrap().push(Response::custom(451, "later".to_owned()));
    let identity = start(&mailbox).await?;
    identity.prepare_reset(ADMIN, "").await?;
    eventually("the mail to be rejected", async || {
        mailbox.refusals.lock().unwrap().is_empty().then_some(())
    })
    .await;
    assert_eq!(queued(&identity).await?, 1);
    eventually("the end of the attempt", async || {
        let soon = "with due as (update mail set next_attempt_at = now())
                    update unfinished_work set next_attempt_at = now() where failures = 1";
        let soon = sqlx::query(soon).execute(&identity.db).await.unwrap();
        (soon.rows_affected() == 1).then_some(())
    })
    .await;
    mailbox.mails(1).await;
    Ok(())
}

#[tokio::test]
async fn a_mail_that_no_program_survives_is_given_up_and_does_not_delay_others() -> Result<()> {
    let mailbox = Mailbox::default();
    mailbox.refusals.lock().unwrap().push(Response::custom(451, "later".to_owned()));
    let identity = start(&mailbox).await?;
    identity.prepare_reset(ADMIN, "").await?;
    let fatal = eventually("a failed mail", async || {
        // Programs began to send it, and did not survive.
        let fatal = "with due as (update mail set next_attempt_at = now())
                     update unfinished_work set taken = 5, next_attempt_at = now()
                     where failures = 1 returning id";
        let fatal: Option<Uuid> =
            sqlx::query_scalar(fatal).fetch_optional(&identity.db).await.ok()?;
        fatal
    })
    .await;
    let given_up = "select id from unfinished_work where given_up_at is not null";
    let given_up = eventually("a dead letter", async || {
        sqlx::query_scalar::<_, Uuid>(given_up).fetch_optional(&identity.db).await.unwrap()
    })
    .await;
    assert_eq!(given_up, fatal);
    identity.prepare_reset(ADMIN, "").await?;
    mailbox.mails(1).await;
    Ok(())
}

#[tokio::test]
async fn a_mail_with_a_permanent_error_is_given_up_until_an_operator_retries_it() -> Result<()> {
    let mailbox = Mailbox::default();
    mailbox.refusals.lock().unwrap().push(response::NO_MAILBOX);
    let identity = start(&mailbox).await?;
    identity.prepare_reset(ADMIN, "").await?;
    let letter = eventually("a dead letter", async || {
        let mut letters = Vec::new();
        mails().list(&identity.db, None, |letter| letters.push(letter)).await.unwrap();
        letters.pop()
    })
    .await;
    assert_eq!(letter.attempts, 1);
    assert!(mailbox.received.lock().unwrap().is_empty());

    let mut connection = identity.db.acquire().await?;
    assert_eq!(mails().retry(&mut connection, Some(&[letter.id])).await?, 1);
    mailbox.mails(1).await;
    eventually("nothing queued", async || (queued(&identity).await.ok()? == 0).then_some(())).await;
    Ok(())
}

#[tokio::test]
async fn mail_settings_are_validated_at_start() -> Result<()> {
    let settings = Settings::new().await?;
    for (settings, named) in [
        (settings.clone().and("smtp-url", "smtp://127.0.0.1:25"), "ASSAY_MAIL_FROM"),
        (settings.and("smtp-url", "http://user:canary@host"), "ASSAY_SMTP_URL"),
    ] {
        let error = Identity::launch(&settings).await.err().expect("the start should fail");
        let error = format!("{error:#}");
        assert!(error.contains(named) && !error.contains("canary"), "{error}");
    }
    Ok(())
}
