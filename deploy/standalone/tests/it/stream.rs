//! Notifications as server-sent events.

use assay_testkit::Api;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use crate::{customer::Customer, people::GROUPS, world::id};

const STREAM: &str = "/api/notifications/stream";

/// An event stream of a client.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    async fn open(api: &Api, path: &str, last: Option<&str>) -> Self {
        let request = api.request(Method::GET, path);
        let request =
            last.into_iter().fold(request, |request, id| request.header("Last-Event-ID", id));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The id and the notification of the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let start = format!("{name}: ");
                    event.lines().find_map(|line| Some(line.strip_prefix(&start)?.to_owned()))
                };
                let event = field("id").zip(field("data"));
                if let Some((id, data)) = event {
                    return Some((id, serde_json::from_str(&data).unwrap()));
                }
            }
            let part = timeout(Duration::from_secs(20), self.response.chunk()).await.unwrap();
            let Ok(Some(part)) = part else { return None };
            self.text.push_str(std::str::from_utf8(&part).unwrap());
        }
    }
}

async fn notify(api: &Api, action: &str) -> String {
    let notification = json!({
        "Source": "Deployment", "SourceId": "1", "Target": "Cluster", "Action": action,
    });
    id(&api.post("/api/notifications", notification).await.created()).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_has_every_notification_once_and_resumes_after_the_last_one() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let mut events = Events::open(api, &format!("{STREAM}?source=Deployment"), None).await;
    let first = notify(api, "Begun").await;
    // The stream is filtered by source, so this event is not in it.
    api.post("/api/projects", json!({"Name": "Rocket"})).await.created();
    let (last, event) = events.next().await.unwrap();
    assert_eq!((id(&event), &event["Action"]), (first.as_str(), &json!("Begun")));
    drop(events);

    let missed = notify(api, "Ended").await;
    let mut events = Events::open(api, &format!("{STREAM}?source=Deployment"), Some(&last)).await;
    assert_eq!(id(&events.next().await.unwrap().1), missed);
    let filtered = api.get("/api/notifications?source=Deployment&action=Ended").await.ok();
    assert_eq!(filtered.as_array().unwrap().len(), 1);
    let mut own = Events::open(api, &format!("{STREAM}?source=Project"), Some("0")).await;
    assert_eq!(own.next().await.unwrap().1["Action"], "Created");

    let wrong = api.request(Method::GET, STREAM).header("Last-Event-ID", "x");
    assay_testkit::Answer::of(wrong).await.is_problem(422, "invalid");
    customer.anonymous().get(STREAM).await.is_problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_token_is_revoked() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let member = customer.create_member("bob", "Login, Read").await;
    let mut events = Events::open(&member.api, &format!("{STREAM}?source=Deployment"), None).await;
    let first = notify(api, "Begun").await;
    assert_eq!(id(&events.next().await.unwrap().1), first);
    api.delete(&format!("/api/users/{}", member.id)).await.expect(204);
    assert_eq!(events.next().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_api_token_loses_the_read_permission() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let member = customer.create_member("bob", "Login, Read, Write").await;
    let token = json!({"Name": "Watcher", "UsagePermission": "Read, Write"});
    let token = member.api.post("/api/users/current/tokens", token).await.created();
    let machine = customer.anonymous().with_token(token["Secret"].as_str().unwrap());
    let mut events = Events::open(&machine, &format!("{STREAM}?source=Deployment"), None).await;
    let first = notify(api, "Begun").await;
    assert_eq!(id(&events.next().await.unwrap().1), first);

    let group = format!("{GROUPS}/{}", member.group);
    api.put(&group, json!({"UsagePermission": "Login, Write"})).await.ok();
    let ended = timeout(Duration::from_secs(5), events.next()).await;
    assert_eq!(ended.expect("the stream ends soon"), None);
    machine.get(STREAM).await.is_problem(403, "forbidden");
}
