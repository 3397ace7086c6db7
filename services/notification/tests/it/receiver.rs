//! A receiver of webhooks with a programmable response.

use std::sync::{Arc, Mutex};

use anyhow::{Context, Result};
use assay_testkit::eventually;
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};

#[derive(Clone)]
pub(crate) enum Behaviour {
    Answer(u16),
    RedirectTo(String),
    /// Answers 429 with `Retry-After`, in seconds.
    RetryAfter(u32),
    Hang,
    /// Answers 403 with the header `Authorization` of the request as body and cookie.
    Echo,
    /// Answers with this status once there is a permit.
    Late(Arc<Semaphore>, u16),
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Clone)]
struct Shared {
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<Request>>>,
}

pub(crate) struct Receiver {
    pub(crate) url: String,
    shared: Shared,
    _server: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start(behaviour: Behaviour) -> Result<Self> {
        let behaviour = Arc::new(Mutex::new(behaviour));
        let shared = Shared { behaviour, requests: Arc::default() };
        let app = Router::new().route("/hook", post(receive)).with_state(shared.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, app).await.expect("a server") });
        Ok(Self { url, shared, _server: server })
    }

    pub(crate) fn set(&self, behaviour: Behaviour) {
        *self.shared.behaviour.lock().unwrap() = behaviour;
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits for this number of requests, and returns all.
    pub(crate) async fn receives(&self, count: usize) -> Vec<Request> {
        eventually("requests at the receiver", || async {
            let requests = self.requests();
            (requests.len() >= count).then_some(requests)
        })
        .await
    }

    /// Waits for the first request.
    pub(crate) async fn first(&self) -> Result<Request> {
        self.receives(1).await.into_iter().next().context("a request")
    }
}

async fn receive(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    shared.requests.lock().unwrap().push(Request { headers: headers.clone(), body });
    let behaviour = shared.behaviour.lock().unwrap().clone();
    match behaviour {
        Behaviour::Answer(status) => StatusCode::from_u16(status).unwrap().into_response(),
        Behaviour::RedirectTo(url) => (StatusCode::FOUND, [("location", url)]).into_response(),
        Behaviour::RetryAfter(seconds) => {
            let headers = [("retry-after", seconds.to_string())];
            (StatusCode::TOO_MANY_REQUESTS, headers).into_response()
        }
        Behaviour::Echo => {
            let secret = headers.get("authorization").cloned().unwrap();
            let body = secret.to_str().unwrap().to_owned();
            (StatusCode::FORBIDDEN, [("set-cookie", secret)], body).into_response()
        }
        Behaviour::Hang => std::future::pending().await,
        Behaviour::Late(permits, status) => {
            permits.acquire().await.unwrap().forget();
            StatusCode::from_u16(status).unwrap().into_response()
        }
    }
}
