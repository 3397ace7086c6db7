//! A nats-server that can be stopped and started again at the same address.

use std::path::PathBuf;

use assay_servers::{DataDir, Nats};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use uuid::Uuid;

use crate::{
    process::{Signal, signal},
    test_dir,
};

/// Address that connections are forwarded to; `None` while the server is stopped.
type Target = watch::Sender<Option<String>>;

/// A nats-server behind a proxy, whose address stays the same when the server is restarted.
///
/// Its methods panic if they fail.
pub struct Broker {
    address: String,
    dir: PathBuf,
    config: Option<PathBuf>,
    target: Target,
    server: Option<Nats>,
    _proxy: JoinSet<()>,
}

impl Broker {
    /// Creates a server without starting it.
    pub async fn new() -> Self {
        Self::with(None).await
    }

    /// Creates a server with a configuration file, without starting it.
    pub async fn configured(config: PathBuf) -> Self {
        Self::with(Some(config)).await
    }

    async fn with(config: Option<PathBuf>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address").to_string();
        let target = Target::default();
        let mut proxy = JoinSet::new();
        proxy.spawn(forward(listener, target.clone()));
        let dir = test_dir().expect("a directory").join(format!("broker-{}", Uuid::now_v7()));
        Self { address, dir, config, target, server: None, _proxy: proxy }
    }

    /// Returns the URL of the proxy.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    pub async fn start(&mut self) {
        let data = DataDir::lock(&self.dir).expect("a directory of its own");
        let server = match &self.config {
            None => Nats::start(&data, None).await,
            Some(config) => Nats::start_with(&data, config, &[]).await,
        };
        let server = server.expect("a nats-server");
        self.target.send_replace(Some(server.url().trim_start_matches("nats://").to_owned()));
        self.server = Some(server);
    }

    /// Stops the server gracefully.
    pub async fn stop(&mut self) {
        self.target.send_replace(None);
        self.server.take().expect("a running server").stop().await.expect("an end");
    }

    /// Kills the server.
    pub async fn kill(&mut self) {
        let server = self.server.take().expect("a running server");
        signal(server.pid(), Signal::KILL);
        server.exited().await;
        self.target.send_replace(None);
    }

    /// Removes all data of the server.
    ///
    /// # Panics
    ///
    /// If the server runs.
    pub fn wipe(&self) {
        assert!(self.server.is_none(), "the server is stopped");
        std::fs::remove_dir_all(self.dir.join("nats")).expect("a store");
    }
}

async fn forward(listener: TcpListener, target: Target) {
    let mut connections = JoinSet::new();
    while let Ok((mut client, _)) = listener.accept().await {
        let mut target = target.subscribe();
        connections.spawn(async move {
            let Some(address) = target.borrow_and_update().clone() else { return };
            let Ok(mut server) = TcpStream::connect(address).await else { return };
            tokio::select! {
                _ = copy_bidirectional(&mut client, &mut server) => {}
                _ = target.changed() => {}
            }
        });
    }
}
