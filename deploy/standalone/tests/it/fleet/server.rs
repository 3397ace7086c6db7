//! The PostgreSQL of a fleet.

use std::path::{Path, PathBuf};

use assay_servers::{DataDir, Durability, Postgres, PostgresOptions};
use assay_testkit::{Signal, signal};
use sqlx::{Connection as _, PgConnection};
use tokio::process::Command;

use super::SERVICES;

/// The script by which Compose creates the databases and their owners.
const DATABASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../postgres/databases.sh");

/// A PostgreSQL with the databases and roles of Compose, which can be stopped and started again at the
/// same address.
pub(crate) struct Server {
    data: DataDir,
    server: Option<Postgres>,
}

impl Server {
    /// Creates a server with empty databases.
    pub(crate) async fn create(dir: &Path) -> Self {
        let server = Self::start(dir).await;
        let options = server.running().options("postgres");
        let mut connection = PgConnection::connect_with(&options).await.unwrap();
        let role = sqlx::query("create role postgres superuser login");
        role.execute(&mut connection).await.unwrap();
        let mut script = Command::new("sh");
        script.arg(DATABASES).env("POSTGRES_USER", "postgres").envs(server.variables());
        for service in SERVICES {
            script.env(format!("ASSAY_{}_DB_PASSWORD", service.to_uppercase()), "secret");
        }
        assert!(script.status().await.unwrap().success());
        server
    }

    /// Starts the server of a directory.
    pub(crate) async fn start(dir: &Path) -> Self {
        let data = DataDir::lock(dir).unwrap();
        let server = Some(start(&data).await);
        Self { data, server }
    }

    /// Returns the URL of the maintenance database for the superuser of Compose.
    pub(crate) fn url(&self) -> String {
        self.url_as("postgres", "postgres")
    }

    /// Returns the URL of the database of a service for its owner.
    pub(crate) fn url_of(&self, service: &str) -> String {
        let name = format!("assay_{service}");
        self.url_as(&name, &name)
    }

    fn url_as(&self, role: &str, database: &str) -> String {
        self.running().url(database).replace("//assay@", &format!("//{role}@"))
    }

    /// Variables with which the programs of PostgreSQL are found, and find this server.
    pub(crate) fn variables(&self) -> [(&'static str, String); 3] {
        let options = self.running().options("postgres");
        let programs = self.running().programs().display();
        [
            ("PATH", format!("{programs}:/usr/bin:/bin")),
            ("PGHOST", options.get_socket().unwrap().display().to_string()),
            ("PGPORT", options.get_port().to_string()),
        ]
    }

    /// The directory of the cluster.
    pub(crate) fn cluster(&self) -> PathBuf {
        self.data.path().join("postgres/cluster")
    }

    /// Stops the server immediately, as a crash of the machine would, and starts it again, which
    /// recovers from its log.
    pub(crate) async fn crash(&mut self) {
        let server = self.server.take().unwrap();
        signal(server.pid(), Signal::QUIT);
        server.exited().await;
        self.server = Some(start(&self.data).await);
    }

    /// Stops the server and starts it again, with the settings that were changed meanwhile.
    pub(crate) async fn restart(&mut self) {
        self.server.take().unwrap().stop().await.unwrap();
        self.server = Some(start(&self.data).await);
    }

    /// Stops the server, and returns its directory.
    pub(crate) async fn stop(mut self) -> PathBuf {
        self.server.take().unwrap().stop().await.unwrap();
        self.data.path().to_owned()
    }

    fn running(&self) -> &Postgres {
        self.server.as_ref().expect("a running server")
    }
}

async fn start(data: &DataDir) -> Postgres {
    let options = PostgresOptions { durability: Durability::Full, ..PostgresOptions::default() };
    Postgres::start(data, &options).await.unwrap()
}
