//! A nats-server that can go away and come back where it was.

use std::path::PathBuf;

use assay_events::{Nats, NatsConfig};
use assay_servers::DataDir;
use clap::Parser;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};
use uuid::Uuid;

/// Where connections are passed on to, nowhere while the server is away.
type Target = watch::Sender<Option<String>>;

/// A nats-server behind an address that stays the same when the server is started again.
pub(crate) struct Broker {
    address: String,
    dir: PathBuf,
    target: Target,
    server: Option<assay_servers::Nats>,
    _proxy: JoinSet<()>,
}

impl Broker {
    /// Not started yet.
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let target = Target::default();
        let mut proxy = JoinSet::new();
        proxy.spawn(pass_on(listener, target.clone()));
        let dir = assay_testkit::test_dir().unwrap().join(format!("broker-{}", Uuid::now_v7()));
        Self { address, dir, target, server: None, _proxy: proxy }
    }

    pub(crate) async fn start(&mut self) {
        let data = DataDir::lock(&self.dir).unwrap();
        let server = assay_servers::Nats::start(&data, None).await.unwrap();
        self.target.send_replace(Some(server.url().trim_start_matches("nats://").to_owned()));
        self.server = Some(server);
    }

    pub(crate) async fn stop(&mut self) {
        self.target.send_replace(None);
        self.server.take().unwrap().stop().await.unwrap();
    }

    /// Loses all that the server has kept.
    pub(crate) fn wipe(&self) {
        assert!(self.server.is_none(), "a running server cannot be wiped");
        std::fs::remove_dir_all(self.dir.join("nats")).unwrap();
    }

    pub(crate) async fn connect(&self) -> Nats {
        #[derive(Parser)]
        struct Cli {
            #[command(flatten)]
            nats: NatsConfig,
        }
        let cli = Cli::parse_from(["test", "--nats-url", &format!("nats://{}", self.address)]);
        Nats::connect(&cli.nats, "test").await.unwrap()
    }
}

async fn pass_on(listener: TcpListener, target: Target) {
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
