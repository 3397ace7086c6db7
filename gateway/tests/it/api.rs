//! A gateway in front of the services of the tests, and requests to it.

use std::{net::SocketAddr, time::Duration};

use assay_auth::{Grant, Issuer, SigningKey, Verifier};
use assay_gateway::{EdgeConfig, Upstream};
use assay_proto::{CustomerId, DESCRIPTORS, Permissions, UserId};
use assay_runtime::{Runtime, Shares, grpc};
use assay_testkit::Wire;
use axum::{Router, body::Body, response::Response};
use clap::Parser;
use http::{HeaderMap, Request, StatusCode, request::Builder};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::services::{self, Uploaded};

/// Any id; the services of the tests do not look at most of them.
pub(crate) const ID: &str = "01a1b2c3-0000-7000-8000-000000000001";

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    edge: EdgeConfig,
}

/// A gateway, and what happens behind it.
pub(crate) struct Api {
    app: Router,
    token: String,
    others_token: String,
    uploads: mpsc::UnboundedReceiver<Uploaded>,
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// With options of its own, as on the command line.
    pub(crate) async fn start_with(options: &[&str]) -> Self {
        let (uploads, seen) = mpsc::unbounded_channel();
        let (issuer, verifier) = keys();
        let address = serve(uploads, &verifier).await;
        Self::before([address; 2], options, &issuer, verifier, seen)
    }

    /// The catalog is a program of its own, at the other end of the wire.
    pub(crate) async fn start_apart() -> (Self, Wire) {
        let (uploads, seen) = mpsc::unbounded_channel();
        let (issuer, verifier) = keys();
        let wire = Wire::to(serve(uploads.clone(), &verifier).await).await.unwrap();
        let others = serve(uploads, &verifier).await;
        (Self::before([wire.address(), others], &[], &issuer, verifier, seen), wire)
    }

    /// A gateway whose services cannot be reached.
    pub(crate) fn alone() -> Self {
        let (issuer, verifier) = keys();
        let nobody = SocketAddr::from(([127, 0, 0, 1], 9));
        Self::before([nobody; 2], &[], &issuer, verifier, mpsc::unbounded_channel().1)
    }

    fn before(
        addresses: [SocketAddr; 2],
        options: &[&str],
        issuer: &Issuer,
        verifier: Verifier,
        uploads: mpsc::UnboundedReceiver<Uploaded>,
    ) -> Self {
        let connect = |address| grpc::connect(&format!("http://{address}")).unwrap();
        let [catalog, others] = addresses.map(connect);
        let upstream = Upstream {
            identity: others.clone(),
            catalog,
            execution: others.clone(),
            notification: others,
            verifier,
            stopping: CancellationToken::new(),
        };
        let permissions = Permissions::parse("", "Read, Write, Execute").unwrap();
        let token = || {
            let grant = Grant::new(CustomerId::new(), UserId::new(), "Ada", permissions);
            issuer.issue(grant).unwrap()
        };
        let edge = Options::parse_from(["test"].iter().chain(options)).edge;
        Self {
            app: assay_gateway::app(upstream, &edge),
            token: token(),
            others_token: token(),
            uploads,
        }
    }

    /// A request with a token.
    pub(crate) fn request(&self, method: &str, path: &str) -> Builder {
        request(method, path).header("Authentication", format!("Bearer {}", self.token))
    }

    /// A request with a token of another customer.
    pub(crate) fn others_request(&self, method: &str, path: &str) -> Builder {
        request(method, path).header("Authentication", format!("Bearer {}", self.others_token))
    }

    /// Sends a request whose answer is not waited for. It ends with the test.
    pub(crate) fn begin(&self, request: Builder, body: Body) {
        #[expect(clippy::disallowed_methods, reason = "there is no program whose stop would wait")]
        tokio::spawn(self.app.clone().oneshot(request.body(body).unwrap()));
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    /// Sends a request without a body, with a token.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.request("GET", path), Body::empty()).await
    }

    /// Sends JSON, with a token.
    pub(crate) async fn json(&self, method: &str, path: &str, json: impl ToString) -> Answer {
        let request = self.request(method, path).header("Content-Type", "application/json");
        self.send(request, Body::from(json.to_string())).await
    }

    /// Sends a request without a body, whose answer nobody reads yet.
    pub(crate) async fn open(&self, request: Builder) -> Response {
        let mut response =
            self.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        // There is an answer, and then nobody cares.
        let first = response.body_mut().frame().await;
        assert!(first.is_some_and(|frame| frame.is_ok()), "it has begun");
        response
    }

    pub(crate) async fn send(&self, request: Builder, body: Body) -> Answer {
        let response = self.app.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes().to_vec());
        let Ok(body) = body else { return Answer::broken_off(parts.status, parts.headers) };
        Answer { status: parts.status, headers: parts.headers, body, whole: true }
    }

    /// What a service made of the next upload.
    pub(crate) async fn uploaded(&mut self) -> Uploaded {
        let next = tokio::time::timeout(Duration::from_secs(10), self.uploads.recv());
        next.await.expect("a service hears of every upload").unwrap()
    }
}

/// A request without a token.
pub(crate) fn request(method: &str, path: &str) -> Builder {
    Request::builder().method(method).uri(path)
}

/// Serves what there is of services.
async fn serve(uploads: mpsc::UnboundedSender<Uploaded>, verifier: &Verifier) -> SocketAddr {
    let runtime = Runtime::new("test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let routes = assay_auth::guard(services::routes(uploads), verifier.clone(), &Shares::new(8));
    grpc::serve(&runtime, listener, routes, DESCRIPTORS).unwrap()
}

fn keys() -> (Issuer, Verifier) {
    assay_runtime::install_crypto();
    let issuer = Issuer::new(&SigningKey::generate().unwrap(), Duration::from_mins(1)).unwrap();
    let verifier = Verifier::of_keys(&issuer.jwks().unwrap()).unwrap();
    (issuer, verifier)
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether the body came to its end.
    pub(crate) whole: bool,
}

impl Answer {
    fn broken_off(status: StatusCode, headers: HeaderMap) -> Self {
        Self { status, headers, body: Vec::new(), whole: false }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?} is no JSON"))
    }

    /// The JSON of a success.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The problem, which has that status and code.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{text}");
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["status"], status);
        assert_eq!(problem["code"], code, "{text}");
        assert_eq!(problem["type"], format!("urn:assay:problem:{code}"));
        problem
    }

    /// The fields that the problem names.
    #[track_caller]
    pub(crate) fn wrong_fields(&self) -> Vec<String> {
        let errors = self.problem(422, "invalid")["errors"].take();
        let pointer = |error: &Value| error["pointer"].as_str().unwrap().to_owned();
        errors.as_array().unwrap().iter().map(pointer).collect()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}
