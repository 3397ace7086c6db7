//! Replicas of all programs, as processes of their own, on one PostgreSQL and one NATS.

mod replica;
mod server;

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering},
};

use assay_testkit::{Api, Broker, eventually, test_dir};
use secrecy::SecretString;
use tokio::process::Command;
use uuid::Uuid;

pub(crate) use self::{replica::Replica, server::Server};
use crate::world::{ADMIN, PASSWORD, log_in};

/// The services, in the order of their start.
pub(crate) const SERVICES: [&str; 4] = ["identity", "catalog", "execution", "notification"];

/// A key for records that exist as long as the test lasts.
const ENCRYPTION_KEY: &str = "1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// Below the ports that the system gives to clients, so that a replica gets its port again.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// The difference of a clock from that of the machine, as `faketime` reads it.
pub(crate) type Clock = Option<&'static str>;

/// Stacks of the five programs. The gateway of each calls the services of its own stack, since names
/// with several addresses need a name server; the stacks share databases and events.
pub(crate) struct Fleet {
    pub(crate) postgres: Server,
    pub(crate) nats: Broker,
    pub(crate) replicas: Vec<Replica>,
    gateways: Vec<SocketAddr>,
    dir: PathBuf,
}

impl Fleet {
    /// Starts a stack for each of the clocks, with additional settings, on a new PostgreSQL.
    pub(crate) async fn start(clocks: &[Clock], settings: &[(&str, &str)]) -> Self {
        Self::on(Server::create(&new_dir("postgres")).await, clocks, settings).await
    }

    /// Does the same on another PostgreSQL. NATS is empty.
    pub(crate) async fn on(postgres: Server, clocks: &[Clock], settings: &[(&str, &str)]) -> Self {
        assay_runtime::install_crypto();
        let dir = new_dir("fleet");
        std::fs::create_dir_all(&dir).unwrap();
        let mut nats = Broker::new().await;
        nats.start().await;
        let mut fleet = Self { postgres, nats, replicas: Vec::new(), gateways: Vec::new(), dir };
        for (number, clock) in (1..).zip(clocks) {
            fleet.add_stack(number, *clock, settings).await;
        }
        fleet
    }

    async fn add_stack(&mut self, number: usize, clock: Clock, settings: &[(&str, &str)]) {
        let gateway = free_address();
        let mut shared = self.shared_settings(gateway);
        shared
            .extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let grpc = SERVICES.map(|service| (service, free_address()));
        for (service, address) in grpc {
            let url = format!("ASSAY_{}_URL", service.to_uppercase());
            shared.push((url, format!("http://{address}")));
        }
        let first = self.replicas.len();
        for (service, address) in grpc {
            let mut own = shared.clone();
            own.push(("ASSAY_GRPC_LISTEN".to_owned(), address.to_string()));
            own.push(("ASSAY_DATABASE_URL".to_owned(), self.postgres.url_of(service)));
            self.replicas.push(Replica::new(service, number, own, clock, &self.dir));
        }
        self.replicas.push(Replica::new("gateway", number, shared, clock, &self.dir));
        self.gateways.push(gateway);
        for replica in &mut self.replicas[first..] {
            replica.start();
        }
        for replica in &self.replicas[first..] {
            eventually(replica.name(), || async { replica.is_ready().await.then_some(()) }).await;
        }
    }

    fn shared_settings(&self, gateway: SocketAddr) -> Vec<(String, String)> {
        let in_dir = |name: &str| self.dir.join(name).display().to_string();
        let settings = [
            ("ASSAY_HTTP_LISTEN", gateway.to_string()),
            ("ASSAY_PUBLIC_URL", "https://assay.test".to_owned()),
            ("ASSAY_NATS_URL", self.nats.url()),
            ("ASSAY_ENCRYPTION_KEYS", ENCRYPTION_KEY.to_owned()),
            ("ASSAY_ARTIFACTS", in_dir("artifacts")),
            ("ASSAY_MAIL_DIR", in_dir("mail")),
            ("ASSAY_ADMIN_EMAIL", ADMIN.to_owned()),
            ("ASSAY_ADMIN_PASSWORD", PASSWORD.to_owned()),
            ("ASSAY_REQUESTS_PER_ADDRESS", "0".to_owned()),
            ("ASSAY_REQUESTS_PER_CUSTOMER", "0".to_owned()),
            ("ASSAY_WEBHOOK_NETWORKS", "127.0.0.1".to_owned()),
            // All replicas share a server with 100 connections.
            ("ASSAY_DATABASE_CONNECTIONS", "4".to_owned()),
            ("ASSAY_LOG", "warn".to_owned()),
            ("ASSAY_LOG_FORMAT", "json".to_owned()),
        ];
        settings.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    /// Returns a client without a token for the gateway of each stack.
    pub(crate) fn gateways(&self) -> Vec<Api> {
        self.gateways.iter().map(|address| Api::new(format!("http://{address}"))).collect()
    }

    /// Returns clients of the operator's administrator, one for the gateway of each stack. They share
    /// the token that the first stack has issued.
    pub(crate) async fn admins(&self) -> Vec<Api> {
        let gateways = self.gateways();
        let first = log_in(&gateways[0], ADMIN, PASSWORD).await;
        gateways.iter().map(|gateway| gateway.with_token_of(&first)).collect()
    }

    /// Returns the folder with the bytes of files and artifacts.
    pub(crate) fn artifacts(&self) -> PathBuf {
        self.dir.join("artifacts")
    }

    /// Returns the URL of the database of a service.
    pub(crate) fn database(&self, service: &str) -> SecretString {
        self.postgres.url_of(service).into()
    }

    /// Runs `assay` with a command for the databases of the fleet; returns whether it was successful,
    /// and its output.
    pub(crate) async fn command(&self, arguments: &[&str]) -> (bool, String) {
        let done = Command::new(programs().join("assay"))
            .env("ASSAY_DATABASE_URL", self.postgres.url())
            .args(arguments)
            .output()
            .await
            .unwrap();
        let output = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8(output).unwrap())
    }

    /// The lines that replicas have logged as errors.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.replicas.iter().flat_map(Replica::errors).collect()
    }

    /// Stops all programs gracefully, and then NATS; returns PostgreSQL.
    pub(crate) async fn stop(mut self) -> Server {
        for replica in &mut self.replicas {
            replica.terminate().await;
        }
        self.nats.stop().await;
        self.postgres
    }
}

/// Returns the path of a new directory for this test.
pub(crate) fn new_dir(name: &str) -> PathBuf {
    test_dir().unwrap().join(format!("{name}-{}", Uuid::now_v7()))
}

/// Returns the directory of the programs that are built with the tests.
pub(crate) fn programs() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_assay")).parent().unwrap()
}

/// Returns an address that is free now, different for each call in the process.
fn free_address() -> SocketAddr {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let from = usize::try_from(process::id()).unwrap() * 31;
    loop {
        let number = from + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + u16::try_from(number % PORTS.len()).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
