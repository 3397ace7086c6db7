//! Mutual TLS between programs.

use std::{fs, path::Path};

use assay_runtime::{
    Runtime, Tls, TlsConfig,
    nats::{NatsServers, connect_now},
};
use assay_servers::{DataDir, Nats};
use assay_testkit::{Authority, eventually};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tonic::Code;

use crate::world::{Client, Program};

/// Issues a certificate to a program of this name.
fn tls(authority: &Authority, name: &str) -> (Tls, TempDir) {
    let directory = TempDir::new().unwrap();
    authority.issue(name, directory.path());
    (Tls::open(&config(directory.path())).unwrap().unwrap(), directory)
}

fn config(directory: &Path) -> TlsConfig {
    TlsConfig {
        tls_certificate_file: Some(directory.join("tls.crt")),
        tls_key_file: Some(directory.join("tls.key")),
        tls_ca_file: Some(directory.join("ca.crt")),
        tls_forwarders: vec!["gateway".to_owned()],
    }
}

/// Starts a program with a certificate, and returns its URL too.
async fn program(tls: &Tls) -> (Program, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let program = Program::start_with(Runtime::with_tls("settings", Some(tls.clone())), listener);
    let url = format!("https://localhost:{}", program.address.port());
    (program, url)
}

#[tokio::test]
async fn programs_of_one_authority_can_call_each_other() {
    let authority = Authority::default();
    let ((server, _files), (client, _other_files)) =
        (tls(&authority, "identity"), tls(&authority, "gateway"));
    let (_program, url) = program(&server).await;
    assert_eq!(Client::with_tls(&client, &url).read().await.unwrap(), "settings");
}

#[tokio::test]
async fn a_caller_without_a_certificate_of_the_authority_is_rejected() {
    let authority = Authority::default();
    let (server, _files) = tls(&authority, "identity");
    let (program, url) = program(&server).await;
    let (stranger, _stranger_files) = tls(&Authority::default(), "gateway");
    let error = Client::with_tls(&stranger, &url).read().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    let error = Client::of(program.address).read().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "without TLS");
    assert_eq!(program.calls.reads(), 0);
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_called() {
    let (server, _files) = tls(&Authority::default(), "identity");
    let (program, url) = program(&server).await;
    let (client, _client_files) = tls(&Authority::default(), "gateway");
    assert!(Client::with_tls(&client, &url).read().await.is_err());
    assert_eq!(program.calls.reads(), 0);
}

#[tokio::test]
async fn only_the_gateway_may_forward_the_address_of_a_client() {
    let authority = Authority::default();
    let (server, _files) = tls(&authority, "identity");
    let (program, url) = program(&server).await;
    for (name, expected) in [("gateway", Some("192.0.2.7")), ("notification", None)] {
        let (client, _client_files) = tls(&authority, name);
        Client::with_tls(&client, &url).read_for("192.0.2.7").await.unwrap();
        assert_eq!(program.calls.client.lock().unwrap().as_deref(), expected, "from {name}");
    }
}

#[tokio::test]
async fn replaced_certificates_are_used_without_a_restart() {
    let (old, new) = (Authority::default(), Authority::default());
    let (server, files) = tls(&old, "identity");
    let (_program, url) = program(&server).await;
    let (client, client_files) = tls(&old, "gateway");
    Client::with_tls(&client, &url).read().await.unwrap();

    fs::write(files.path().join("tls.crt"), "half a certificate").unwrap();
    let unchanged = Client::with_tls(&client, &url).read().await;
    unchanged.expect("invalid files are ignored");

    new.issue("identity", files.path());
    new.issue("gateway", client_files.path());
    eventually("the new certificates are used", || async {
        Client::with_tls(&client, &url).read().await.ok()
    })
    .await;
    let (outdated, _outdated_files) = tls(&old, "gateway");
    assert!(Client::with_tls(&outdated, &url).read().await.is_err());
}

#[test]
fn an_incomplete_configuration_is_rejected() {
    let (_tls, files) = tls(&Authority::default(), "identity");
    let half = TlsConfig { tls_key_file: None, ..config(files.path()) };
    assert!(Tls::open(&half).is_err());
    let missing = TlsConfig { tls_ca_file: Some("nowhere".into()), ..config(files.path()) };
    assert!(Tls::open(&missing).is_err());
    assert!(Tls::open(&TlsConfig::default()).unwrap().is_none());
}

#[tokio::test]
async fn a_program_connects_to_nats_with_a_certificate() {
    let files = TempDir::new().unwrap();
    Authority::default().issue("nats", files.path());
    let path = |name: &str| files.path().join(name);
    let config = path("nats-server.conf");
    let [certificate, key, authority] = ["tls.crt", "tls.key", "ca.crt"].map(path);
    fs::write(
        &config,
        format!("tls {{ cert_file: {certificate:?}, key_file: {key:?}, ca_file: {authority:?}, verify: true }}"),
    )
    .unwrap();
    let data = DataDir::lock(files.path().join("data")).unwrap();
    let server = Nats::start_with(&data, &config, &[]).await.unwrap();
    let url = server.url().replace("127.0.0.1", "localhost");

    let servers = NatsServers {
        nats_ca_file: Some(authority),
        nats_certificate_file: Some(certificate),
        nats_key_file: Some(key),
        ..NatsServers::at(url.into())
    };
    connect_now(&servers, "identity").await.unwrap();
    let without = NatsServers { nats_certificate_file: None, nats_key_file: None, ..servers };
    assert!(connect_now(&without, "identity").await.is_err());
    server.stop().await.unwrap();
}
