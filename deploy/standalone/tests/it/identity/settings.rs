//! Settings of users, and the mails that they enable.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc};

use crate::{
    customer::{Customer, unique},
    junit::upload,
    people::{create_group, create_user, password_of, reset_password},
    smtp::{Delivery, serve},
    world::{World, create_project, id},
};

const SETTINGS: &str = "/api/users/current/settings";

/// A report of two tests, one of which has failed.
const JUNIT: &str = r#"<testsuite name="login">
  <testcase classname="login" name="opens" time="1.5"/>
  <testcase classname="login" name="remembers &lt;b&gt;me&lt;/b&gt;" time="2.5">
    <failure message="forgot"/>
  </testcase>
</testsuite>"#;

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_read_and_changed() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let first = api.get(SETTINGS).await.ok();
    assert_eq!(first["MailWhenExecutionEnds"], false);
    let based_on = &first["DataVersion"];

    let on = json!({"MailWhenExecutionEnds": true, "DataVersion": based_on, "Theme": "dark"});
    let second = api.put(SETTINGS, on.clone()).await.ok();
    assert_eq!(second["MailWhenExecutionEnds"], true);
    assert_eq!(api.get(SETTINGS).await.ok(), second);
    assert_eq!(api.put(SETTINGS, json!({})).await.ok()["MailWhenExecutionEnds"], true);
    api.put(SETTINGS, on.clone()).await.is_problem(409, "stale_data_version");
    let tag = format!("\"{}\"", based_on.as_str().unwrap());
    let request = api.request(Method::PUT, SETTINGS).json(&json!({})).header("If-Match", tag);
    Answer::of(request).await.is_problem(412, "stale_data_version");
    for wrong in [json!("yes"), json!(1), json!(null)] {
        let problem = api.put(SETTINGS, json!({"MailWhenExecutionEnds": wrong})).await;
        let problem = problem.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], "/MailWhenExecutionEnds", "{problem}");
    }

    let visitor = customer.assay.act_for_new_customer(&unique("visited")).await;
    visitor.get(SETTINGS).await.is_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscribed_user_gets_a_mail_when_an_execution_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (delivered, mut mails) = mpsc::channel::<Delivery>(8);
    let take = move |mail| {
        let delivered = delivered.clone();
        async move { delivered.send(mail).await.is_ok() }
    };
    let story = async move {
        let world = World::start_with(|settings| {
            settings.mail.smtp_url = Some(format!("smtp://{address}").into());
            settings.mail.mail_from = Some("Assay <assay@assay.test>".to_owned());
        })
        .await;
        let permissions = "Login, Read, Write, Execute, UserSettings";
        let testers = create_group(&world.api, "Testers of ours", permissions).await;
        create_user(&world.api, "grace@example.org", id(&testers)).await.created();
        let Delivery { from, to, mail: invitation } = mails.recv().await.unwrap();
        assert!(from.starts_with("FROM:<assay@assay.test>"), "{from}");
        assert_eq!(to, ["TO:<grace@example.org>"]);
        let password = password_of("grace@example.org");
        reset_password(&world.anonymous(), invitation.token(), &password).await.ok();
        let grace = world.log_in("grace@example.org").await;
        let project = create_project(&grace).await;
        let set = json!({"Name": "Nightly regression"});
        let set = grace.post(&format!("{project}/testsets"), set).await.created();
        let set = format!("{project}/testsets/{}", id(&set));

        // She has not enabled mails.
        upload(&world.api, &set, JUNIT).await.created();
        switch(&grace, true).await;
        let started = grace.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
        let started = format!("{project}/executions/{}", id(&started.created()));
        let results = json!([
            {"Identifier": "login.opens", "Result": "Passed", "DurationInSec": 1},
            {"Identifier": "login.remembers <b>me</b>", "Result": "Error", "DurationInSec": 2},
        ]);
        grace.post(&format!("{started}/results"), results).await.ok();
        grace.post(&format!("{started}/complete"), json!({})).await.ok();
        let mail = report_to_grace(&mut mails).await;
        for part in [
            "Result:      Error",
            "Test set:    Nightly regression",
            "Tests:       1 passed, 1 with errors",
            "Duration:    00:00:03",
            "Customer:    Assay",
            &format!("https://assay.test/executions/{}", started.rsplit('/').next().unwrap()),
            "PUT https://assay.test/api/users/current/settings",
            "login.remembers &lt;b&gt;me&lt;/b&gt;",
        ] {
            assert!(mail.mail.body.contains(part), "{part}: {}", mail.mail.body);
        }
        assert!(!mail.mail.body.contains("<li>login.remembers <b>"), "{}", mail.mail.body);
        let subject = "Subject: [Assay] Error: Nightly regression (1 passed, 1 with errors)";
        assert!(mail.mail.header.contains(subject), "{}", mail.mail.header);

        let canceled = grace.post(&format!("{set}/executions"), json!({})).await.created();
        let canceled = format!("{project}/executions/{}", id(&canceled));
        grace.delete(&canceled).await.expect(204);
        let mail = report_to_grace(&mut mails).await.mail;
        assert!(mail.header.contains("Subject: [Assay] Canceled: Nightly"), "{}", mail.header);

        // A machine with her API token, and another user.
        let token = json!({"Name": "CI", "UsagePermission": "Read, Write, Execute"});
        let token = grace.post("/api/users/current/tokens", token).await.created();
        let machine = world.anonymous().with_token(token["Secret"].as_str().unwrap());
        upload(&machine, &set, JUNIT).await.created();
        let mail = report_to_grace(&mut mails).await.mail;
        assert!(mail.header.contains("Subject: [Assay] Failed: Nightly"), "{}", mail.header);
        switch(&grace, false).await;
        upload(&machine, &set, JUNIT).await.created();
        switch(&world.api, true).await;
        upload(&world.api, &set, JUNIT).await.created();
        let last = mails.recv().await.unwrap();
        assert_eq!(last.to, ["TO:<ada@example.org>"], "{}", last.mail.header);
        assert!(mails.try_recv().is_err(), "unexpected mail");
        assert!(!world.has_mail(), "a mail was also written to a file");
        world.stop().await;
    };
    tokio::select! {
        () = story => {}
        () = serve(listener, take) => {}
    }
}

async fn switch(api: &Api, on: bool) -> Value {
    api.put(SETTINGS, json!({"MailWhenExecutionEnds": on})).await.ok()
}

async fn report_to_grace(mails: &mut mpsc::Receiver<Delivery>) -> Delivery {
    let mail = mails.recv().await.unwrap();
    assert_eq!(mail.to, ["TO:<grace@example.org>"], "{}", mail.mail.header);
    mail
}
