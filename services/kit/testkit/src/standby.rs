//! A PostgreSQL server and its standby.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use assay_servers::{DataDir, Durability, Postgres, PostgresOptions};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::{
    process::{Signal, signal},
    test_dir,
};

/// A primary server and its synchronous standby.
///
/// Its methods panic if they fail.
pub struct Replicated {
    primary: Option<Postgres>,
    standby: Postgres,
    database: String,
}

impl Replicated {
    /// Starts both, with an empty database.
    pub async fn start(database: &str) -> Self {
        let dir = test_dir().expect("a directory").join(format!("replicated-{}", Uuid::now_v7()));
        let [primary_dir, standby_dir] = ["primary", "standby"].map(|name| dir.join(name));
        let primary = start(&primary_dir).await;
        primary.create_database_if_missing(database).await.expect("a database");
        let socket =
            primary.options(database).get_socket().expect("a socket").display().to_string();
        primary.stop().await.expect("an end");

        fs::create_dir(&standby_dir).expect("a directory of its own");
        let copied = Command::new("cp")
            .arg("-a")
            .args([&primary_dir.join("postgres"), &standby_dir])
            .status();
        assert!(copied.expect("cp").success());
        File::create(cluster(&standby_dir).join("standby.signal")).expect("a file");
        set(&standby_dir, &format!("primary_conninfo = 'host={socket} user=assay'"));
        set(&primary_dir, "synchronous_standby_names = '*'");
        Self {
            primary: Some(start(&primary_dir).await),
            standby: start(&standby_dir).await,
            database: database.to_owned(),
        }
    }

    /// Returns the URL of the database at the primary.
    ///
    /// # Panics
    ///
    /// If the primary was killed.
    pub fn primary(&self) -> String {
        self.primary.as_ref().expect("a running server").url(&self.database)
    }

    /// Returns the URL of the database at the standby.
    pub fn standby(&self) -> String {
        self.standby.url(&self.database)
    }

    /// Kills the primary.
    pub async fn kill_primary(&mut self) {
        let server = self.primary.take().expect("a running server");
        signal(server.pid(), Signal::KILL);
        server.exited().await;
    }

    /// Promotes the standby to a primary.
    pub async fn promote(&self) {
        let options = self.standby.options("postgres");
        let mut connection = PgConnection::connect_with(&options).await.expect("a connection");
        let promote = sqlx::query_scalar("select pg_promote()");
        let promoted: bool = promote.fetch_one(&mut connection).await.expect("an answer");
        assert!(promoted, "the promotion has finished");
    }
}

async fn start(data: &Path) -> Postgres {
    let data = DataDir::lock(data).expect("a directory of its own");
    let options = PostgresOptions { durability: Durability::Full, ..PostgresOptions::default() };
    Postgres::start(&data, &options).await.expect("a PostgreSQL")
}

fn cluster(data: &Path) -> PathBuf {
    data.join("postgres/cluster")
}

/// Adds a setting to a stopped server.
fn set(data: &Path, setting: &str) {
    let file = OpenOptions::new().append(true).open(cluster(data).join("postgresql.auto.conf"));
    writeln!(file.expect("settings"), "{setting}").expect("a written setting");
}
