//! Metrics of a running Assay, compared with their documentation, the alerts and the dashboard.

use std::collections::{BTreeMap, BTreeSet};

use assay_runtime::{
    Runtime, serve_admin,
    telemetry::{LogConfig, LogFormat, Telemetry, TelemetryConfig},
};
use assay_testkit::{Answer, Api, eventually};
use async_nats::jetstream;
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use crate::{
    junit::{report, upload},
    world::{World, create_project, id},
};

const ALERTS: &str = include_str!("../../../observability/alerts.yml");
const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
const METRICS: &str = include_str!("../../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../observability/dashboard.json");

/// Type and label names of metrics, by name.
type Metrics = BTreeMap<String, (String, BTreeSet<String>)>;

/// Returns the metrics that a text uses, without the suffixes of histograms.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let metrics = words.filter(|word| {
        ["assay_", "http_server_", "rpc_server_", "rpc_client_"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
    });
    let name = |word: &str| {
        let suffixes = ["_bucket", "_count", "_sum"];
        let name = suffixes.iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word);
        name.to_owned()
    };
    metrics.map(name).collect()
}

/// Returns the metrics in the tables of `docs/metrics.md`.
fn documented() -> Metrics {
    let row = |line: &str| {
        let cells: Vec<_> = line.strip_prefix("| `")?.split(" | ").collect();
        let [name, kind, labels, _unit, _meaning] = cells[..] else {
            panic!("a metric has five columns: {line}")
        };
        let labels = labels.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((name.trim_end_matches('`').to_owned(), (kind.to_owned(), labels)))
    };
    METRICS.lines().filter_map(row).collect()
}

/// Returns the metrics on a page in the text format of Prometheus.
fn served(page: &str) -> Metrics {
    let mut metrics = Metrics::new();
    let mut current = String::new();
    for line in page.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|it| it.split_once(' ')) {
            name.clone_into(&mut current);
            metrics.insert(current.clone(), (kind.to_owned(), BTreeSet::new()));
        } else if !line.starts_with('#')
            && let Some((_, labels)) = line.split_once('{')
        {
            let (_, found) = metrics.get_mut(&current).expect("samples follow their type");
            let names = labels.split("=\"").filter_map(|part| part.rsplit(',').next());
            // The last part is a value. Buckets have an upper bound.
            let names = names.filter(|name| !name.contains('"') && *name != "le");
            found.extend(names.map(str::to_owned));
        }
    }
    metrics
}

/// Causes at least one value of every metric: successes, failures and refusals.
async fn produce_every_metric(world: &World) {
    let api = &world.api;
    let hook = json!({"Url": "https://127.0.0.1:9/", "Events": ["Project.*"]});
    api.post("/api/webhooks", hook).await.created();
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Nightly"})).await.created();
    let execution = upload(api, &format!("{project}/testsets/{}", id(&set)), report(3)).await;
    let file =
        format!("{project}/executions/{}/results/artifacts/run.log", id(&execution.created()));
    let file = api.request(Method::PUT, &file).header("Content-Type", "text/plain").body("started");
    Answer::of(file).await.ok();
    let launches = "/api/v2/agents/launch";
    let launch = api.post(launches, json!({"name": "Nightly"})).await.created();
    let finish = format!("{launches}/{}/finish", launch["id"].as_str().unwrap());
    api.put(&finish, json!({})).await.ok();

    let nats = jetstream::new(async_nats::connect(world.nats_url()).await.unwrap());
    let (event, customer) = (Uuid::now_v7(), Uuid::now_v7());
    let subject = format!("assay.execution.{customer}.execution.completed");
    let invalid = json!({
        "specversion": "1.0", "id": event, "source": "/assay/execution",
        "type": "io.assay.execution.execution.completed.v1", "subject": "1",
        "time": "2026-11-20T23:34:00Z", "datacontenttype": "application/json",
        "tenantid": customer, "data": {},
    });
    for payload in [b"no event".to_vec(), invalid.to_string().into_bytes()] {
        nats.publish(subject.clone(), payload.into()).await.unwrap().await.unwrap();
    }
    // Exhausts the customer's requests of the minute.
    eventually("a refused request", || async {
        let answers = join_all((0..50).map(|_| api.get("/api/projects"))).await;
        answers.iter().any(|answer| answer.status == 429).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_is_documented_and_every_documented_metric_is_served() {
    let logs = LogConfig { log: "off".to_owned(), log_format: LogFormat::Json };
    let config = TelemetryConfig { logs, otlp_endpoint: None };
    let telemetry = Telemetry::install("test", &config).unwrap();
    let runtime = Runtime::new("test");
    let admin = serve_admin(&runtime, ([127, 0, 0, 1], 0).into(), telemetry.metrics()).await;
    let admin = Api::new(format!("http://{}", admin.unwrap()));
    let page = async || String::from_utf8(admin.get("/metrics").await.expect(200).body.clone());
    let world = World::start_with(|settings| {
        settings.edge.requests_per_customer = 300;
        settings.webhooks.webhook_networks = "127.0.0.1".parse().unwrap();
    })
    .await;
    // Prometheus sees no increase in a counter that starts with 1, so that the first would not alert.
    for zero in [
        r#"assay_dead_letters{kind="event"} 0"#,
        "assay_leases_expired_total 0",
        r#"assay_requests_refused_total{limit="customer"} 0"#,
    ] {
        eventually(zero, || async { page().await.unwrap().contains(zero).then_some(()) }).await;
    }
    produce_every_metric(&world).await;

    let documented = documented();
    assert!(documented.len() > 20, "{documented:?}");
    let page = eventually("all documented metrics", || async {
        let page = page().await.unwrap();
        let served = served(&page);
        let mut missing = documented.keys().filter(|name| !served.contains_key(*name)).peekable();
        if missing.peek().is_some() {
            println!("in docs/metrics.md, but not on /metrics: {:?}", missing.collect::<Vec<_>>());
            return None;
        }
        Some(page)
    })
    .await;
    for (name, served) in served(&page) {
        assert!(page.contains(&format!("# HELP {name} ")), "{name} has no # HELP");
        let documented = documented.get(&name);
        assert_eq!(documented, Some(&served), "docs/metrics.md and /metrics differ: {name}");
    }
    world.stop().await;
}

#[test]
fn the_dashboard_and_the_alerts_use_documented_metrics() {
    serde_json::from_str::<Value>(DASHBOARD).expect("a dashboard is JSON");
    let used = &metrics_in(DASHBOARD) | &metrics_in(ALERTS);
    assert!(used.len() > 10, "{used:?}");
    let documented = documented().into_keys().collect();
    let unknown: Vec<_> = used.difference(&documented).collect();
    assert!(unknown.is_empty(), "not in docs/metrics.md: {unknown:?}");
}

#[tokio::test]
async fn alerts_fire_as_their_tests_expect() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../observability/alerts.test.yml");
    let promtool = Command::new("promtool").args(["test", "rules", tests]).output().await;
    let promtool = promtool.expect("run deploy/local/install test");
    assert!(promtool.status.success(), "{}", String::from_utf8_lossy(&promtool.stderr));
    let tests = std::fs::read_to_string(tests).unwrap();
    for alert in alerts() {
        assert!(tests.contains(&format!("alertname=\"{alert}\"")), "{alert} has no test");
    }
}

/// Returns the names of the alerts.
fn alerts() -> Vec<&'static str> {
    let alerts = ALERTS.lines().filter_map(|line| line.split_once("alert: "));
    alerts.map(|(_, name)| name).collect()
}

#[test]
fn the_operations_guide_explains_every_alert() {
    let alerts = alerts();
    assert!(alerts.len() >= 10, "{alerts:?}");
    for alert in alerts {
        assert!(OPERATIONS.contains(&format!("| `{alert}` |")), "{alert}");
    }
}
