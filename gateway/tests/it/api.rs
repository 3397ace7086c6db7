//! A gateway in front of test services, and requests to it.

use std::{net::SocketAddr, time::Duration};

use assay_auth::{Grant, Issuer, SigningKey, Verifier};
use assay_fair::Shares;
use assay_gateway::{EdgeConfig, Upstream};
use assay_proto::{CustomerId, DESCRIPTORS, Permissions, UserId};
use assay_rpc::grpc;
use assay_runtime::Runtime;
use assay_testkit::Wire;
use axum::{Router, body::Body, response::Response};
use clap::Parser;
use http::{HeaderMap, Request, StatusCode, request::Builder};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::{net::TcpListener, sync::mpsc};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::services::{self, Hanging, Uploaded};

/// An arbitrary id; the test services ignore most ids.
pub(crate) const ID: &str = "01a1b2c3-0000-7000-8000-000000000001";

/// The permissions of the caller: those of all operations, except `CustomerManagement`.
const PERMISSIONS: &str =
    "Read, Write, Execute, Accept, Reject, UserSettings, UserManagement, Automation";

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    edge: EdgeConfig,
}

/// A gateway, and the uploads that its services receive.
pub(crate) struct Api {
    app: Router,
    token: String,
    others_token: String,
    uploads: mpsc::UnboundedReceiver<Uploaded>,
    /// The calls of `/api/projects/hangs`.
    pub(crate) hanging: Hanging,
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a gateway with command-line options.
    pub(crate) async fn start_with(options: &[&str]) -> Self {
        let (uploads, seen) = mpsc::unbounded_channel();
        let (issuer, verifier) = keys();
        let hanging = Hanging::default();
        let address = serve(uploads, hanging.clone(), &verifier).await;
        Self { hanging, ..Self::connected_to([address; 2], options, &issuer, verifier, seen) }
    }

    /// Starts a gateway that reaches the catalog through a wire, separately from the other
    /// services.
    pub(crate) async fn start_with_separate_catalog() -> (Self, Wire) {
        let (uploads, seen) = mpsc::unbounded_channel();
        let (issuer, verifier) = keys();
        let catalog = serve(uploads.clone(), Hanging::default(), &verifier).await;
        let others = serve(uploads, Hanging::default(), &verifier).await;
        let wire = Wire::to(catalog).await.unwrap();
        (Self::connected_to([wire.address(), others], &[], &issuer, verifier, seen), wire)
    }

    /// A gateway whose services cannot be reached.
    pub(crate) fn without_services() -> Self {
        let (issuer, verifier) = keys();
        let unreachable = SocketAddr::from(([127, 0, 0, 1], 9));
        Self::connected_to([unreachable; 2], &[], &issuer, verifier, mpsc::unbounded_channel().1)
    }

    fn connected_to(
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
            notification: others.clone(),
            notification_events: others,
            verifier,
            stopping: CancellationToken::new(),
            largest_file_mib: 1,
        };
        let permissions = Permissions::parse("", PERMISSIONS).unwrap();
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
            hanging: Hanging::default(),
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

    /// Sends a request without waiting for the answer. It ends with the test.
    pub(crate) fn spawn_request(&self, request: Builder, body: Body) {
        #[expect(clippy::disallowed_methods, reason = "no runtime waits for this task")]
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

    /// Sends a request without a body and reads only the first frame of the answer.
    pub(crate) async fn open(&self, request: Builder) -> Response {
        let mut response =
            self.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        // The rest of the answer stays unread.
        let first = response.body_mut().frame().await;
        assert!(first.is_some_and(|frame| frame.is_ok()), "the answer should have a first frame");
        response
    }

    pub(crate) async fn send(&self, request: Builder, body: Body) -> Answer {
        let response = self.app.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes().to_vec());
        let Ok(body) = body else { return Answer::aborted(parts.status, parts.headers) };
        Answer { status: parts.status, headers: parts.headers, body, is_complete: true }
    }

    /// Waits for the next upload; returns the bytes that the service received.
    pub(crate) async fn uploaded(&mut self) -> Uploaded {
        let next = tokio::time::timeout(Duration::from_secs(10), self.uploads.recv());
        next.await.expect("a service receives every upload").unwrap()
    }
}

/// A request without a token.
pub(crate) fn request(method: &str, path: &str) -> Builder {
    Request::builder().method(method).uri(path)
}

/// Serves the test services.
async fn serve(
    uploads: mpsc::UnboundedSender<Uploaded>,
    hanging: Hanging,
    verifier: &Verifier,
) -> SocketAddr {
    let runtime = Runtime::new("test");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let routes = services::routes(uploads, hanging);
    let routes = assay_auth::guard(routes, verifier.clone(), &Shares::new(8));
    grpc::serve(&runtime, listener, routes, DESCRIPTORS).unwrap()
}

fn keys() -> (Issuer, Verifier) {
    assay_runtime::install_crypto();
    let issuer = Issuer::new(&SigningKey::generate().unwrap(), Duration::from_mins(1)).unwrap();
    let verifier = Verifier::of_keys(&issuer.jwks().unwrap()).unwrap();
    (issuer, verifier)
}

/// An answer of the gateway.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether the body is complete.
    pub(crate) is_complete: bool,
}

impl Answer {
    fn aborted(status: StatusCode, headers: HeaderMap) -> Self {
        Self { status, headers, body: Vec::new(), is_complete: false }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?} is not JSON"))
    }

    /// The JSON of a successful answer.
    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// The problem; asserts its status and code.
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

    /// The pointers to the fields that the problem names.
    #[track_caller]
    pub(crate) fn invalid_fields(&self) -> Vec<String> {
        let errors = self.problem(422, "invalid")["errors"].take();
        let pointer = |error: &Value| error["pointer"].as_str().unwrap().to_owned();
        errors.as_array().unwrap().iter().map(pointer).collect()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}
