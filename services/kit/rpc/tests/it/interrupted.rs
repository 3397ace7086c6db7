//! Connections that break while a response arrives.

use std::{
    convert::Infallible,
    future::pending,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use assay_proto::DESCRIPTORS;
use assay_rpc::grpc::{self, Channel};
use assay_runtime::Runtime;
use assay_testkit::{Wire, eventually};
use axum::{Router, routing::post};
use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::join_all, stream};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::net::TcpListener;
use tonic::body::Body;
use tower::Service;

/// A program that sends the first frames of its responses.
struct Program {
    address: SocketAddr,
    /// Number of responses whose first frames were sent.
    responses: Arc<AtomicUsize>,
    _runtime: Runtime,
}

impl Program {
    /// Starts a program. A whole response has a message and trailers; after less, nothing follows.
    async fn start(frames: usize) -> Self {
        let responses = Arc::<AtomicUsize>::default();
        let sent = Arc::clone(&responses);
        let response = move || {
            let sent = sent.clone();
            async move { respond(frames, sent) }
        };
        let app = Router::new().route("/{service}/{method}", post(response));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let runtime = Runtime::new("test");
        let address = grpc::serve(&runtime, listener, app, DESCRIPTORS).unwrap();
        Self { address, responses, _runtime: runtime }
    }
}

fn respond(count: usize, sent: Arc<AtomicUsize>) -> Response<Body> {
    let empty_message = Frame::data(Bytes::from_static(&[0; 5]));
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    let whole = [empty_message, Frame::trailers(trailers)];
    let is_whole = count == whole.len();
    let rest = async move {
        sent.fetch_add(1, Ordering::SeqCst);
        if is_whole { None } else { pending().await }
    };
    let frames = stream::iter(whole).take(count).map(Some).chain(rest.into_stream());
    let frames = frames.filter_map(async |frame| frame.map(Ok::<_, Infallible>));
    Response::builder()
        .header("content-type", "application/grpc")
        .body(Body::new(StreamBody::new(frames.boxed())))
        .unwrap()
}

#[tokio::test]
async fn a_read_succeeds_if_the_connection_breaks_within_its_response() {
    let whole = Program::start(2).await;
    for (method, frames) in [
        ("UserSettingsService/GetUserSettings", 0),
        ("UserSettingsService/GetUserSettings", 1),
        ("UserService/ListUsers", 0),
    ] {
        let program = Program::start(frames).await;
        let wire = Wire::to(program.address).await.unwrap();
        let addresses = vec![whole.address, wire.address()];
        let channel = Channel::resolved_by("settings:50051".parse().unwrap(), move || {
            let addresses = addresses.clone();
            async { io::Result::Ok(addresses) }
        });
        let call = async || {
            let path = format!("/assay.identity.v1.{method}");
            let request = Request::post(path).body(Body::empty()).unwrap();
            let response = channel.clone().call(request).await.expect("a response");
            response.into_body().collect().await.expect("a whole response");
        };
        let begun = || program.responses.load(Ordering::SeqCst) > 0;
        let calls = join_all((0..2).map(async |_| {
            while !begun() {
                call().await;
            }
        }));
        let cut = async {
            eventually("a response that does not end", || async { begun().then_some(()) }).await;
            wire.cut();
        };
        tokio::join!(calls, cut);
    }
}
