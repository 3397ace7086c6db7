//! Notifications as server-sent events.

use assay_testkit::Api;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use crate::{customer::Customer, people::GROUPS, world::id};

const STREAM: &str = "/api/notifications/stream";

/// An event stream of a client. An event is its id, or its name instead if that is not `notification`, and
/// its data.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    async fn open(api: &Api, path: &str, last: Option<&str>) -> Self {
        let request = api.request(Method::GET, path);
        Self::of(request, last).await
    }

    async fn of(request: RequestBuilder, last: Option<&str>) -> Self {
        let request =
            last.into_iter().fold(request, |request, id| request.header("Last-Event-ID", id));
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// The id of the next event and its notification, or its name and its data if it is not a CloudEvent; `None`
    /// at the end of the stream.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            while let Some(end) = self.text.find("\n\n") {
                let event: String = self.text.drain(..end + 2).collect();
                let field = |name: &str| {
                    let start = format!("{name}: ");
                    event.lines().find_map(|line| Some(line.strip_prefix(&start)?.to_owned()))
                };
                let Some((name, data)) = field("event").zip(field("data")) else { continue };
                let data: Value = serde_json::from_str(&data).unwrap();
                if name != "notification" {
                    return Some((name, data));
                }
                assert_eq!(
                    (&data["specversion"], &data["id"]),
                    (&json!("1.0"), &data["data"]["Id"])
                );
                return Some((field("id").unwrap(), data["data"].clone()));
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

    // Clients that cannot send headers name the event in the query. A browser that reconnects sends both.
    let path = format!("{STREAM}?source=Deployment&lastEventId={last}");
    let mut queried = Events::open(api, &path, None).await;
    assert_eq!(id(&queried.next().await.unwrap().1), missed);
    let mut reconnected = Events::open(api, &path, Some(&missed)).await;
    let newest = notify(api, "Repeated").await;
    assert_eq!(id(&reconnected.next().await.unwrap().1), newest);

    // A restored database does not know all events that clients have seen.
    let unknown = "019cade2-11c0-779f-8491-6e652d066e91";
    let mut events = Events::open(api, STREAM, Some(unknown)).await;
    let reset = ("reset".to_owned(), json!({"Reason": "UnknownLastEventId"}));
    assert_eq!(events.next().await.unwrap(), reset);
    let next = notify(api, "Restored").await;
    assert_eq!(events.next().await.unwrap().0, next);
    for wrong in ["x", "99999999999"] {
        let wrong = format!("{STREAM}?lastEventId={wrong}");
        api.get(&wrong).await.is_problem(422, "invalid");
    }
    let wrong = api.request(Method::GET, STREAM).header("Last-Event-ID", "x");
    assay_testkit::Answer::of(wrong).await.is_problem(422, "invalid");
    for (filter, pointer, named) in [
        ("sourcee=x", "/sourcee", "did you mean `source`?"),
        ("colour=x", "/colour", "source, action"),
        ("source=TestSett", "/source", "TestSet"),
        ("event=TestSet.Complete", "/event", "Completed"),
        ("result=Fail", "/result", "Failed"),
        ("projectId=shop", "/projectId", "project id"),
    ] {
        let refused = api.get(&format!("{STREAM}?{filter}")).await.is_problem(422, "invalid");
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{filter}");
        assert!(refused.to_string().contains(named), "{refused}");
    }
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

/// A token for streams, of a client with this one.
async fn stream_token(api: &Api) -> String {
    let token = api.post(&format!("{STREAM}/token"), json!({})).await.ok();
    token["Token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_token_opens_streams_of_its_customer_and_nothing_else() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let token = stream_token(api).await;
    let anonymous = customer.anonymous();
    let path = format!("{STREAM}?token={token}");
    let mut events = Events::open(&anonymous, &path, None).await;
    let other = Customer::new().await;
    notify(&other.api, "Elsewhere").await;
    let first = notify(api, "Begun").await;
    assert_eq!(id(&events.next().await.unwrap().1), first);

    let thief = customer.anonymous().with_token(&token);
    for path in
        ["/api/notifications", "/api/projects", "/api/users/current/tokens", "/api/webhooks"]
    {
        thief.get(path).await.is_problem(401, "unauthenticated");
        anonymous.get(&format!("{path}?token={token}")).await.is_problem(401, "unauthenticated");
    }
    let forged = json!({"Source": "A", "Target": "B", "Action": "C"});
    thief.post("/api/notifications", forged).await.is_problem(401, "unauthenticated");
    thief.post(&format!("{STREAM}/token"), json!({})).await.is_problem(401, "unauthenticated");
    let elsewhere = json!({"CustomerId": "019cade2-11c0-779f-8491-6e652d066e91"});
    thief.post("/api/token/refine", elsewhere).await.is_problem(401, "unauthenticated");
    Events::open(&thief, STREAM, None).await;

    // Tokens that are valid for more do not belong into URLs.
    let login = format!("{STREAM}?token={}", api.token());
    anonymous.get(&login).await.is_problem(401, "unauthenticated");
    let writer = customer.create_member("bob", "Login, Write").await;
    writer.api.post(&format!("{STREAM}/token"), json!({})).await.is_problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_token_dies_with_the_token_that_created_it() {
    let customer = Customer::new().await;
    let member = customer.create_member("bob", "Login, Read, Write").await;
    let body = json!({"Name": "Watcher", "UsagePermission": "Read"});
    let machine = member.api.post("/api/users/current/tokens", body).await.created();
    let secret = machine["Secret"].as_str().unwrap();
    let of_machine = stream_token(&customer.anonymous().with_token(secret)).await;
    let of_session = stream_token(&member.api).await;
    let anonymous = customer.anonymous();
    let [of_machine, of_session] =
        [of_machine, of_session].map(|token| format!("{STREAM}?token={token}"));
    let mut machines = Events::open(&anonymous, &of_machine, None).await;
    let mut sessions = Events::open(&anonymous, &of_session, None).await;
    member.api.delete(&format!("/api/users/current/tokens/{}", id(&machine))).await.expect(204);
    assert_eq!(machines.next().await, None);
    anonymous.get(&of_machine).await.is_problem(401, "unauthenticated");
    let first = notify(&customer.api, "Begun").await;
    assert_eq!(id(&sessions.next().await.unwrap().1), first);
    member.api.post("/api/token/logout", json!({})).await.expect(204);
    assert_eq!(sessions.next().await, None);
    anonymous.get(&of_session).await.is_problem(401, "unauthenticated");
}
