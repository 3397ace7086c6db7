//! Observability of a request: a trace through all programs, log lines and metrics.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File},
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex},
};

use assay_testkit::{Answer, Api, eventually};
use opentelemetry_proto::tonic::{
    collector::trace::v1::{
        ExportTraceServiceRequest, ExportTraceServiceResponse,
        trace_service_server::{TraceService, TraceServiceServer},
    },
    trace::v1::{Span, span::SpanKind},
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};
use tonic::{
    Request, Response, Status, async_trait,
    codec::CompressionEncoding,
    transport::{Server, server::TcpIncoming},
};

use crate::process::{PASSWORD, Program, command, data_dir};

/// Trace and span of the client.
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

/// The request id of the client.
const REQUEST: &str = "story-7:1";

/// Stored data that traces must not contain.
const NAME: &str = "Apollo 4711";

/// A collector of traces.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let scopes = resources.flat_map(|resource| resource.scope_spans);
        self.0.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    async fn serve(&self, tasks: &mut JoinSet<()>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = TraceServiceServer::new(self.clone());
        let service = service.accept_compressed(CompressionEncoding::Gzip);
        let server = Server::builder().add_service(service);
        tasks.spawn(async {
            server.serve_with_incoming(TcpIncoming::from(listener)).await.unwrap();
        });
        address
    }

    /// The spans of the client's trace.
    fn trace(&self) -> Trace {
        let ours = |span: &&Span| hex(&span.trace_id) == TRACE;
        Trace(self.0.lock().unwrap().iter().filter(ours).cloned().collect())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
}

/// The spans of one trace.
struct Trace(Vec<Span>);

impl Trace {
    /// The only span with this kind, name and parent.
    #[track_caller]
    fn find(&self, kind: SpanKind, name: &str, parent: &str) -> &Span {
        let fits = |span: &&Span| {
            span.kind() == kind && span.name == name && hex(&span.parent_span_id) == parent
        };
        let found: Vec<_> = self.0.iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "{kind:?} {name} below {parent}:\n{}", self.tree());
        found[0]
    }

    fn tree(&self) -> String {
        let line = |span: &Span| {
            let (id, parent) = (hex(&span.span_id), hex(&span.parent_span_id));
            format!("{id} below {parent}: {:?} {}\n", span.kind(), span.name)
        };
        self.0.iter().map(line).collect()
    }
}

fn attributes(span: &Span) -> HashMap<&str, String> {
    let text = |value: &opentelemetry_proto::tonic::common::v1::AnyValue| format!("{value:?}");
    let attributes = span.attributes.iter();
    attributes
        .map(|one| (one.key.as_str(), one.value.as_ref().map_or_else(String::new, text)))
        .collect()
}

/// Receives one delivery; returns its head.
async fn receiver() -> (String, impl Future<Output = String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let head = async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (mut head, mut bytes) = (Vec::new(), [0; 4096]);
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let count = stream.read(&mut bytes).await.unwrap();
            head.extend_from_slice(&bytes[..count]);
        }
        stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await.unwrap();
        String::from_utf8_lossy(&head).into_owned()
    };
    (url, head)
}

/// An `assay` with logs, traces and metrics.
async fn observed(data: &Path, collector: SocketAddr, log: &Path) -> Program {
    let mut command = command(data);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{collector}"))
        .env("ASSAY_ADMIN_LISTEN", "127.0.0.1:0")
        .env("ASSAY_WEBHOOK_NETWORKS", "127.0.0.1")
        .env("ASSAY_LOG", "info,sqlx=debug")
        .env("ASSAY_LOG_FORMAT", "json")
        .stderr(File::create(log).unwrap());
    Program::start(command).await
}

async fn create_project(api: &Api) -> Value {
    let request = api
        .request(Method::POST, "/api/projects")
        .header("traceparent", format!("00-{TRACE}-{SPAN}-01"))
        .header("X-Request-Id", REQUEST)
        .json(&json!({"Name": NAME}));
    Answer::of(request).await.created()
}

/// Waits for the notification of the project.
async fn wait_for_notification(api: &Api, project: &Value) {
    eventually("a notification", || async {
        let notifications = api.get("/api/notifications?source=Project").await.ok();
        let notification =
            notifications.as_array()?.iter().find(|one| one["SourceId"] == project["Id"])?.clone();
        Some(notification)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_one_trace_through_http_grpc_postgresql_nats_and_webhooks() {
    let (data, collector, mut tasks) = (data_dir(), Collector::default(), JoinSet::new());
    let address = collector.serve(&mut tasks).await;
    let program = observed(&data, address, &data.with_extension("log")).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let (url, delivered) = receiver().await;
    let hook = json!({"Url": url, "Events": ["Project.*"]});
    api.post("/api/webhooks", hook).await.created();
    let project = create_project(&api).await;
    wait_for_notification(&api, &project).await;
    let delivered = delivered.await;
    assert!(program.terminate().await.success());

    let trace = collector.trace();
    println!("{}", trace.tree());
    let http = trace.find(SpanKind::Server, "POST /api/projects", SPAN);
    let method = "assay.catalog.v1.ProjectService/CreateProject";
    let call = trace.find(SpanKind::Client, method, &hex(&http.span_id));
    let answer = trace.find(SpanKind::Server, method, &hex(&call.span_id));
    let insert = trace.find(SpanKind::Client, "insert project", &hex(&answer.span_id));
    let of_insert = attributes(insert);
    assert!(of_insert["db.system.name"].contains("postgresql"), "{of_insert:?}");
    let consumers = trace.0.iter().filter(|span| {
        span.kind() == SpanKind::Consumer && attributes(span)["consumer"].contains("notification")
    });
    let consumers: Vec<_> = consumers.collect();
    assert_eq!(consumers.len(), 1, "{}", trace.tree());
    assert_eq!(consumers[0].parent_span_id, answer.span_id, "{}", trace.tree());
    trace.find(SpanKind::Client, "insert notification", &hex(&consumers[0].span_id));
    let sent = trace.find(SpanKind::Client, "deliver", &hex(&consumers[0].span_id));
    let context = format!("traceparent: 00-{TRACE}-{}-01", hex(&sent.span_id));
    assert!(delivered.to_lowercase().contains(&context), "{delivered}");
    assert!(delivered.contains("webhook-signature"), "{delivered}");

    let ids: HashSet<_> = trace.0.iter().map(|span| hex(&span.span_id)).collect();
    for span in &trace.0 {
        let parent = hex(&span.parent_span_id);
        assert!(parent == SPAN || ids.contains(&parent), "{parent} is missing:\n{}", trace.tree());
    }
    let everything = format!("{:?}", collector.0.lock().unwrap());
    assert!(
        !everything.contains(NAME) && !everything.contains(PASSWORD),
        "a span contains stored data"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_log_line_of_a_request_has_its_id_and_trace_in_every_service() {
    let (data, collector, mut tasks) = (data_dir(), Collector::default(), JoinSet::new());
    let address = collector.serve(&mut tasks).await;
    let log = data.with_extension("log");
    let program = observed(&data, address, &log).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let project = create_project(&api).await;
    wait_for_notification(&api, &project).await;
    assert!(program.terminate().await.success());

    let lines = fs::read_to_string(&log).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect(line));
    let ours: Vec<_> = lines.filter(|line| line["trace_id"] == TRACE).collect();
    let of = |target: &str| ours.iter().filter(|line| line["target"] == target).collect::<Vec<_>>();
    let gateway = of("assay_gateway::telemetry");
    assert_eq!(gateway.len(), 1, "{ours:#?}");
    assert_eq!(gateway[0]["request_id"], REQUEST);
    let (own, others): (Vec<_>, Vec<_>) =
        of("sqlx::query").into_iter().partition(|line| line["span"]["name"] == "rpc");
    assert!(!own.is_empty(), "the catalog logs its statements: {ours:#?}");
    for line in own {
        assert_eq!(line["request_id"], REQUEST, "{line}");
    }
    assert!(!others.is_empty(), "consumers of its events log, too: {ours:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn assay_serves_health_and_metrics_of_all_programs() {
    let (data, collector, mut tasks) = (data_dir(), Collector::default(), JoinSet::new());
    let address = collector.serve(&mut tasks).await;
    let program = observed(&data, address, &data.with_extension("log")).await;
    program.log_in("ada@example.org", PASSWORD).await;
    let shown = program.startup_lines.iter().find_map(|line| line.strip_prefix("Metrics:"));
    let admin = Api::new(shown.unwrap().trim().trim_end_matches("/metrics"));
    assert_eq!(admin.get("/livez").await.status, 200);
    assert_eq!(admin.get("/readyz").await.status, 200);
    let metrics = admin.get("/metrics").await;
    let metrics = String::from_utf8_lossy(&metrics.body);
    for name in
        ["http_server_request_duration_seconds_count", "rpc_client_replicas", "assay_leases_held"]
    {
        assert!(metrics.contains(name), "{name} is missing:\n{metrics}");
    }
    assert!(program.terminate().await.success());
}
