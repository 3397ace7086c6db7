//! What is shipped for Prometheus and Grafana, compared with what there is to be seen.

use std::collections::BTreeSet;

use assay_runtime::telemetry::{LogFormat, Telemetry, TelemetryConfig};
use assay_testkit::eventually;
use async_nats::jetstream;
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use crate::{
    junit::{report, upload},
    world::{World, id, project},
};

const ALERTS: &str = include_str!("../../../observability/alerts.yml");
const OPERATIONS: &str = include_str!("../../../../docs/operations.md");
const METRICS: &str = include_str!("../../../../docs/metrics.md");
const DASHBOARD: &str = include_str!("../../../observability/dashboard.json");

/// The names of metrics in a text, without what Prometheus adds to those of histograms.
fn metrics(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| {
        ["assay_", "http_server_", "rpc_server_", "rpc_client_"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
    });
    let name = |word: &str| {
        let parts = ["_bucket", "_count", "_sum"];
        let name = parts.iter().find_map(|part| word.strip_suffix(part)).unwrap_or(word);
        name.to_owned()
    };
    ours.map(name).collect()
}

/// Everything that leaves a trace in the metrics, the bad as well as the good.
async fn make_history(world: &World) {
    let api = &world.api;
    let hook = json!({"Url": "https://127.0.0.1:9/", "Events": ["Project.*"]});
    api.post("/api/webhooks", hook).await.created();
    let project = project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Nightly"})).await.created();
    upload(api, &format!("{project}/testsets/{}", id(&set)), report(3)).await.expect(201);

    let nats = jetstream::new(async_nats::connect(world.nats_url()).await.unwrap());
    let (event, customer) = (Uuid::now_v7(), Uuid::now_v7());
    let subject = format!("assay.execution.{customer}.execution.completed");
    let unreadable = json!({
        "specversion": "1.0", "id": event, "source": "/assay/execution",
        "type": "io.assay.execution.execution.completed.v1", "subject": "1",
        "time": "2026-11-20T23:34:00Z", "datacontenttype": "application/json",
        "tenantid": customer, "data": {},
    });
    for payload in [b"no event".to_vec(), unreadable.to_string().into_bytes()] {
        nats.publish(subject.clone(), payload.into()).await.unwrap().await.unwrap();
    }
    // The last requests of the minute, and one more.
    eventually("a refused request", || async {
        let answers = join_all((0..50).map(|_| api.get("/api/projects"))).await;
        answers.iter().any(|answer| answer.status == 429).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_of_the_dashboard_and_the_alerts_exists() {
    let config =
        TelemetryConfig { log: "off".to_owned(), log_format: LogFormat::Json, otlp_endpoint: None };
    let telemetry = Telemetry::install("test", &config).unwrap();
    let world = World::start_with(|settings| {
        settings.edge.requests_per_customer = 300;
        settings.webhooks.webhook_networks = "127.0.0.1".parse().unwrap();
    })
    .await;
    // What begins with one has not grown, as Prometheus sees it: nobody would hear of the first.
    for none in [
        r#"assay_dead_letters_total{consumer="catalog"} 0"#,
        "assay_leases_expired_total 0",
        r#"assay_requests_refused_total{limit="customer"} 0"#,
    ] {
        eventually(none, || async { telemetry.metrics().render().contains(none).then_some(()) })
            .await;
    }
    make_history(&world).await;

    serde_json::from_str::<Value>(DASHBOARD).expect("a dashboard is JSON");
    let wanted = &metrics(DASHBOARD) | &metrics(ALERTS);
    assert!(wanted.len() > 10, "{wanted:?}");
    eventually("all metrics", || async {
        let there = metrics(&telemetry.metrics().render());
        let missing: Vec<_> = wanted.difference(&there).collect();
        println!("missing: {missing:?}");
        missing.is_empty().then_some(())
    })
    .await;
    assert_described(&telemetry.metrics().render());
    world.stop().await;
}

/// Each metric on `/metrics` has a line of help and a row in the documentation.
fn assert_described(page: &str) {
    let names = |prefix: &str| -> BTreeSet<_> {
        page.lines().filter_map(|line| line.strip_prefix(prefix)?.split(' ').next()).collect()
    };
    let undescribed: Vec<_> = names("# TYPE ").difference(&names("# HELP ")).copied().collect();
    assert!(undescribed.is_empty(), "without # HELP: {undescribed:?}");
    for name in names("# TYPE ") {
        assert!(METRICS.contains(&format!("| `{name}` |")), "{name} is not in docs/metrics.md");
    }
}

#[tokio::test]
async fn the_alerts_fire_when_they_should() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../observability/alerts.test.yml");
    let ran = Command::new("promtool").args(["test", "rules", tests]).output().await;
    let ran = ran.expect("run deploy/local/install test");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let tested = std::fs::read_to_string(tests).unwrap();
    for alert in alerts() {
        assert!(tested.contains(&format!("alertname=\"{alert}\"")), "{alert} is not tested");
    }
}

/// The names of the alerts.
fn alerts() -> Vec<&'static str> {
    let alerts = ALERTS.lines().filter_map(|line| line.split_once("alert: "));
    alerts.map(|(_, name)| name).collect()
}

#[test]
fn the_guide_tells_what_each_alert_means() {
    let alerts = alerts();
    assert!(alerts.len() >= 10, "{alerts:?}");
    for alert in alerts {
        assert!(OPERATIONS.contains(&format!("| `{alert}` |")), "{alert}");
    }
}
