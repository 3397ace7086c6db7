//! Webhooks with the documented example of a receiver.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, Result};
use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::{
    customer::Customer,
    junit,
    world::{World, create_project, id},
};

/// `docs/webhooks/receiver.py`, which prints its address and then each accepted delivery.
struct Receiver {
    url: String,
    lines: Lines<BufReader<ChildStdout>>,
    _process: Child,
}

impl Receiver {
    async fn start(secret: &str) -> Result<Self> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/webhooks/receiver.py");
        let mut process = Command::new("python3")
            .args([script, "0"])
            .env("WEBHOOK_SECRET", secret)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("python3")?;
        let lines = BufReader::new(process.stdout.take().context("no output")?).lines();
        let mut this = Self { url: String::new(), lines, _process: process };
        this.url = this.line().await?;
        Ok(this)
    }

    async fn line(&mut self) -> Result<String> {
        let line = timeout(Duration::from_secs(20), self.lines.next_line()).await??;
        line.context("the receiver exited")
    }
}

async fn start_with_local_webhooks() -> World {
    World::start_with(|settings| {
        settings.webhooks.webhook_networks = "127.0.0.1".parse().unwrap();
    })
    .await
}

/// Waits for a delivery with this status and answer.
async fn wait_for_delivery(api: &Api, webhook: &Value, status: &str, answer: u16) -> Value {
    let path = format!("/api/webhooks/{}/deliveries?status={status}", id(webhook));
    eventually("a delivery", || async {
        let list = api.get(&path).await.ok();
        let first = list.as_array().and_then(|list| list.first().cloned());
        first.filter(|delivery| delivery["ResponseStatus"] == answer)
    })
    .await
}

#[tokio::test]
async fn the_documented_receiver_accepts_only_genuine_deliveries() -> Result<()> {
    let world = start_with_local_webhooks().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut receiver = Receiver::start(secret).await?;
    let body = json!({"Url": receiver.url, "Events": ["Project.*"], "Secret": secret});
    let made = world.api.post("/api/webhooks", body).await.created();
    assert_eq!(made["Secret"], secret);
    let attempts = format!("/api/webhooks/{}/attempts", id(&made));
    let test = world.api.post(&format!("/api/webhooks/{}/test", id(&made)), json!({})).await.ok();
    assert_eq!(receiver.line().await?, format!("Webhook {} Tested None Assay", id(&made)));
    assert_eq!((&test["ResponseStatus"], &test["Error"]), (&json!(204), &Value::Null));
    assert_eq!(world.api.get(&attempts).await.ok(), json!([test]));
    let project = create_project(&world.api).await;
    let project = project.rsplit('/').next().unwrap_or_default();
    assert_eq!(receiver.line().await?, format!("Project {project} Created None Assay"));
    let delivered = wait_for_delivery(&world.api, &made, "Delivered", 204).await;
    assert_eq!(delivered["Attempts"], 1);
    let of_delivery = format!("{attempts}?deliveryId={}", id(&delivered));
    let logged = world.api.get(&of_delivery).await.ok();
    assert_eq!(logged[0]["DeliveryId"], delivered["Id"]);
    assert_eq!((logged[0]["Deliveries"].as_i64(), logged.as_array().unwrap().len()), (Some(1), 1));
    world.api.get(&format!("{attempts}?deliveryId=x")).await.is_problem(422, "invalid");

    // It rejects deliveries that are signed with another secret.
    let other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let body = json!({"Url": receiver.url, "Events": ["TestSet.*"], "Secret": other});
    let forged = world.api.post("/api/webhooks", body).await.created();
    let sets = format!("/api/projects/{project}/testsets");
    world.api.post(&sets, json!({"Name": "Smoke"})).await.created();
    wait_for_delivery(&world.api, &forged, "Pending", 401).await;

    // A redelivery is accepted and ignored.
    let again = format!("/api/webhooks/{}/deliveries/{}/redeliver", id(&made), id(&delivered));
    assert_eq!(world.api.post(&again, json!({})).await.ok()["Status"], "Pending");
    wait_for_delivery(&world.api, &made, "Delivered", 204).await;
    let renamed = json!({"Name": "Rocket 2"});
    world.api.put(&format!("/api/projects/{project}"), renamed).await.ok();
    assert_eq!(receiver.line().await?, format!("Project {project} Changed None Assay"));
    world.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_notification_of_a_client_that_looks_like_one_of_assay_is_marked_everywhere() -> Result<()>
{
    let world = start_with_local_webhooks().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut receiver = Receiver::start(secret).await?;
    let events = ["Project.*", "Client.Project.*"];
    let body = json!({"Url": receiver.url, "Events": events, "Secret": secret});
    world.api.post("/api/webhooks", body).await.created();
    let project = create_project(&world.api).await;
    let project = project.rsplit('/').next().unwrap_or_default();
    let forged = json!({
        "Source": "Project", "SourceId": project, "Target": "Customer", "Action": "Created",
        "Origin": "Assay",
    });
    assert_eq!(receiver.line().await?, format!("Project {project} Created None Assay"));
    let created = world.api.post("/api/notifications", forged).await.created();
    assert_eq!(created["Origin"], "Client", "{created}");
    assert_eq!(receiver.line().await?, format!("Project {project} Created None Client"));

    let listed = world.api.get("/api/notifications?source=Project").await.ok();
    let origins: Vec<_> = listed.as_array().unwrap().iter().map(|one| &one["Origin"]).collect();
    assert_eq!(origins, ["Client", "Assay"]);

    let nats = async_nats::connect(world.nats_url()).await?;
    let stream = async_nats::jetstream::new(nats).get_stream("ASSAY_NOTIFICATIONS").await?;
    for (subject, source, origin) in [
        ("assay.notifications.*.project.created", "/assay/notifications", "Assay"),
        ("assay.notifications.*.client.project.created", "/assay/clients/", "Client"),
    ] {
        let message = eventually("a message on NATS", || async {
            stream.get_last_raw_message_by_subject(subject).await.ok()
        })
        .await;
        let event: Value = serde_json::from_slice(&message.payload)?;
        assert!(event["source"].as_str().is_some_and(|text| text.starts_with(source)), "{event}");
        assert_eq!(event["data"]["Origin"], origin);
    }
    world.stop().await;
    Ok(())
}

/// Each test is created and finished, and the execution ends.
#[tokio::test]
async fn an_upload_of_a_thousand_tests_is_a_few_batches() -> Result<()> {
    let world = start_with_local_webhooks().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut receiver = Receiver::start(secret).await?;
    let body = json!({
        "Url": receiver.url, "Secret": secret, "BatchSize": 10_000,
        "Events": ["TestCase.Created", "TestCase.Finished", "TestSet.Completed"],
    });
    let made = world.api.post("/api/webhooks", body).await.created();
    let sets = format!("{}/testsets", create_project(&world.api).await);
    let set = world.api.post(&sets, json!({"Name": "All"})).await.created();
    let set = format!("{sets}/{}", id(&set));
    junit::upload(&world.api, &set, junit::report(1000)).await.created();
    for _ in 0..2001 {
        receiver.line().await?;
    }
    let attempts = format!("/api/webhooks/{}/attempts", id(&made));
    let sizes = eventually("all attempts", || async {
        let attempts = world.api.get(&attempts).await.ok();
        let attempts = attempts.as_array().unwrap().iter();
        let sizes: Vec<_> = attempts.map(|one| one["Deliveries"].as_u64().unwrap()).collect();
        (sizes.iter().sum::<u64>() == 2001).then_some(sizes)
    })
    .await;
    assert!(sizes.len() <= 6, "{sizes:?}");
    world.stop().await;
    Ok(())
}

/// Uploads a report of a branch with a test of the checkout team and one of the depot, of which one may fail.
async fn upload_of(api: &Api, set: &str, branch: &str, failing: &str) {
    let test = |owner: &str| {
        let failure = if owner == failing { "<failure message='lost'/>" } else { "" };
        format!(
            "<testcase classname='Shop' name='{owner}'><properties>\
             <property name='owner' value='{owner}'/></properties>{failure}</testcase>"
        )
    };
    let report =
        format!("<testsuite name='Shop'>{}{}</testsuite>", test("Checkout"), test("Depot"));
    let request = api.request(Method::POST, &format!("{set}/results?branch={branch}"));
    let request = request.header("Content-Type", "application/xml").body(report);
    Answer::of(request).await.created();
}

#[tokio::test]
async fn a_webhook_is_sent_what_fails_or_is_fixed_for_an_owner_on_some_branches() -> Result<()> {
    let world = start_with_local_webhooks().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut receiver = Receiver::start(secret).await?;
    let body = json!({
        "Url": receiver.url, "Secret": secret, "Events": ["TestSet.Completed"],
        "Branches": ["release/*"], "Owners": ["checkout"],
    });
    let made = world.api.post("/api/webhooks", body).await.created();
    let sets = format!("{}/testsets", create_project(&world.api).await);
    let set = world.api.post(&sets, json!({"Name": "All"})).await.created();
    let path = format!("{sets}/{}", id(&set));
    for (branch, failing) in [
        ("release/2.4", "Depot"),
        ("release/2.4", "Checkout"),
        ("release/2.5", "Checkout"),
        ("release/2.5", "none"),
        ("release/2.5", "none"),
        ("main", "Checkout"),
    ] {
        upload_of(&world.api, &path, branch, failing).await;
    }
    for _ in 0..3 {
        assert_eq!(
            receiver.line().await?,
            format!("TestSet {} Completed Completed Assay", id(&set))
        );
    }
    let selected = "/api/notifications?event=TestSet.Completed&branch=release/*&owner=CHECKOUT";
    let selected = world.api.get(selected).await.ok();
    let branches: Vec<_> =
        selected.as_array().unwrap().iter().map(|one| one["Branch"].clone()).collect();
    assert_eq!(branches, ["release/2.5", "release/2.5", "release/2.4"]);
    assert_eq!(selected[0]["Owners"], json!(["Checkout"]));
    let deliveries = world.api.get(&format!("/api/webhooks/{}/deliveries", id(&made))).await.ok();
    let ids = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| id(one).to_owned()).collect()
    };
    assert_eq!(ids(&deliveries), ids(&selected));
    world.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_webhook_is_changed_archived_and_deleted() -> Result<()> {
    let api = &Customer::new().await.api;
    for wrong in [
        json!({}),
        json!({"Url": "http://ci.example.org"}),
        json!({"Url": "https://127.0.0.1/"}),
        json!({"Url": "https://ci.example.org", "Events": ["everything"]}),
        json!({"Url": "https://ci.example.org", "Events": ["TestSet.Complete"]}),
        json!({"Url": "https://ci.example.org", "ProjectIds": ["shop"]}),
        json!({"Url": "https://ci.example.org", "TestSetIds": ["nightly"]}),
        json!({"Url": "https://ci.example.org", "Branches": [""]}),
        json!({"Url": "https://ci.example.org", "Branches": ["*/*/*/*/*/*/*/*/*/*/*"]}),
        json!({"Url": "https://ci.example.org", "Owners": ["a\nb"]}),
        json!({"Url": "https://ci.example.org", "Secret": "short"}),
        json!({"Url": "https://ci.example.org", "Headers": [{"Name": "Host", "Value": "x"}]}),
        json!({"Url": "https://ci.example.org", "Headers": [{"Name": "X-Key", "Value": "********"}]}),
        json!({"Url": "https://ci.example.org", "BatchSize": 10_001}),
        json!({"Url": "https://ci.example.org", "Format": "Slack", "BatchSize": 2}),
        json!({"Url": "https://ci.example.org", "Digest": "Daily"}),
        json!({"Url": "https://ci.example.org", "QuietFrom": "22:00"}),
        json!({"Url": "https://ci.example.org", "TimeZone": "Europe/Atlantis"}),
    ] {
        api.post("/api/webhooks", wrong).await.is_problem(422, "invalid");
    }
    let quiet = json!({"Url": "https://ci.example.org", "Events": ["Client.Nothing.Happens"]});
    let made = api.post("/api/webhooks", quiet).await.created();
    let path = format!("/api/webhooks/{}", id(&made));
    let lost = api.get(&format!("{path}/deliveries?status=Lost")).await.is_problem(422, "invalid");
    assert_eq!(lost["errors"][0]["pointer"], "/status");
    let seen = api.get(&path).await.ok();
    assert_eq!(seen["Secret"], "********");
    assert_eq!(seen["FailingSince"], Value::Null);
    let mut whole = seen.clone();
    whole["Archived"] = json!(true);
    let archived = api.put(&path, whole).await.ok();
    assert_eq!((&archived["Archived"], &archived["Secret"]), (&json!(true), &seen["Secret"]));
    api.put(&path, seen).await.is_problem(409, "stale_data_version");
    api.post(&format!("{path}/deliveries/redeliver"), json!({})).await.is_problem(409, "archived");
    assert_eq!(api.get("/api/webhooks").await.ok(), json!([archived]));
    api.delete(&path).await.expect(204);
    api.get(&path).await.is_problem(404, "not_found");
    assert_eq!(api.get("/api/webhooks").await.ok(), json!([]));
    Ok(())
}
