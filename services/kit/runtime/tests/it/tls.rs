//! Programs that prove themselves to each other by certificates.

use std::{fs, path::Path};

use assay_runtime::{Runtime, Tls, TlsConfig, install_crypto};
use assay_testkit::eventually;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tonic::Code;

use crate::world::{Client, Program};

/// An authority that issues certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: String,
}

impl Authority {
    fn new() -> Self {
        install_crypto();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), certificate }
    }

    /// Writes a certificate for this name, its key, and whom it trusts.
    fn issue(&self, name: &str, directory: &Path) {
        let names = vec![name.to_owned(), "localhost".to_owned()];
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names).unwrap();
        let certificate = certificate.signed_by(&key, &self.issuer).unwrap();
        fs::write(directory.join("tls.crt"), certificate.pem()).unwrap();
        fs::write(directory.join("tls.key"), key.serialize_pem()).unwrap();
        fs::write(directory.join("ca.crt"), &self.certificate).unwrap();
    }

    /// As a program of this name uses it.
    fn tls(&self, name: &str) -> (Tls, TempDir) {
        let directory = TempDir::new().unwrap();
        self.issue(name, directory.path());
        (Tls::open(&config(directory.path())).unwrap().unwrap(), directory)
    }
}

fn config(directory: &Path) -> TlsConfig {
    TlsConfig {
        tls_certificate_file: Some(directory.join("tls.crt")),
        tls_key_file: Some(directory.join("tls.key")),
        tls_ca_file: Some(directory.join("ca.crt")),
        tls_forwarders: vec!["gateway".to_owned()],
    }
}

/// A program with a certificate, and its URL.
async fn program(tls: &Tls) -> (Program, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let program = Program::start_with(Runtime::with_tls("settings", Some(tls.clone())), listener);
    let url = format!("https://localhost:{}", program.address.port());
    (program, url)
}

#[tokio::test]
async fn programs_of_one_authority_reach_each_other() {
    let authority = Authority::new();
    let ((server, _files), (client, _other_files)) =
        (authority.tls("identity"), authority.tls("gateway"));
    let (_program, url) = program(&server).await;
    assert_eq!(Client::with_tls(&client, &url).read().await.unwrap(), "settings");
}

#[tokio::test]
async fn a_caller_without_a_certificate_of_the_authority_is_rejected() {
    let authority = Authority::new();
    let (server, _files) = authority.tls("identity");
    let (program, url) = program(&server).await;
    let (stranger, _stranger_files) = Authority::new().tls("gateway");
    let error = Client::with_tls(&stranger, &url).read().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable);
    let error = Client::of(program.address).read().await.unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "without TLS");
    assert_eq!(program.asked.reads(), 0);
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_called() {
    let (server, _files) = Authority::new().tls("identity");
    let (program, url) = program(&server).await;
    let (client, _client_files) = Authority::new().tls("gateway");
    assert!(Client::with_tls(&client, &url).read().await.is_err());
    assert_eq!(program.asked.reads(), 0);
}

#[tokio::test]
async fn only_the_gateway_states_the_address_of_a_client() {
    let authority = Authority::new();
    let (server, _files) = authority.tls("identity");
    let (program, url) = program(&server).await;
    for (name, expected) in [("gateway", Some("192.0.2.7")), ("notification", None)] {
        let (client, _client_files) = authority.tls(name);
        Client::with_tls(&client, &url).read_for("192.0.2.7").await.unwrap();
        assert_eq!(program.asked.client.lock().unwrap().as_deref(), expected, "from {name}");
    }
}

#[tokio::test]
async fn replaced_certificates_are_used_without_a_restart() {
    let (old, new) = (Authority::new(), Authority::new());
    let (server, files) = old.tls("identity");
    let (_program, url) = program(&server).await;
    let (client, client_files) = old.tls("gateway");
    Client::with_tls(&client, &url).read().await.unwrap();

    fs::write(files.path().join("tls.crt"), "half a certificate").unwrap();
    let unchanged = Client::with_tls(&client, &url).read().await;
    unchanged.expect("files that cannot be used change nothing");

    new.issue("identity", files.path());
    new.issue("gateway", client_files.path());
    eventually("the new certificates are used", || async {
        Client::with_tls(&client, &url).read().await.ok()
    })
    .await;
    let (outdated, _outdated_files) = old.tls("gateway");
    assert!(Client::with_tls(&outdated, &url).read().await.is_err());
}

#[test]
fn half_a_configuration_is_rejected() {
    let (_tls, files) = Authority::new().tls("identity");
    let half = TlsConfig { tls_key_file: None, ..config(files.path()) };
    assert!(Tls::open(&half).is_err());
    let missing = TlsConfig { tls_ca_file: Some("nowhere".into()), ..config(files.path()) };
    assert!(Tls::open(&missing).is_err());
    assert!(Tls::open(&TlsConfig::default()).unwrap().is_none());
}
