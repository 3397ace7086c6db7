//! A PostgreSQL, and another one that follows it and can take its place.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use assay_servers::{DataDir, Durability, Postgres, PostgresOptions};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::{broker::kill, test_dir};

/// A primary server and its standby. Nothing is acknowledged before both have it on disk.
///
/// Its methods panic where they fail: nothing can be tested then.
pub struct Replicated {
    primary: Option<Postgres>,
    standby: Postgres,
    database: String,
}

impl Replicated {
    /// Starts both, with an empty database.
    pub async fn start(database: &str) -> Self {
        let dir = test_dir().expect("a directory").join(format!("replicated-{}", Uuid::now_v7()));
        let [ours, theirs] = ["primary", "standby"].map(|name| dir.join(name));
        let primary = start(&ours).await;
        primary.create_database_if_missing(database).await.expect("a database");
        let socket =
            primary.options(database).get_socket().expect("a socket").display().to_string();
        primary.stop().await.expect("an end");

        fs::create_dir(&theirs).expect("a directory of its own");
        let copied = Command::new("cp").arg("-a").args([&ours.join("postgres"), &theirs]).status();
        assert!(copied.expect("cp").success());
        File::create(cluster(&theirs).join("standby.signal")).expect("a file");
        set(&theirs, &format!("primary_conninfo = 'host={socket} user=assay'"));
        set(&ours, "synchronous_standby_names = '*'");
        Self {
            primary: Some(start(&ours).await),
            standby: start(&theirs).await,
            database: database.to_owned(),
        }
    }

    /// The URL of the database at the primary.
    ///
    /// # Panics
    ///
    /// If that was killed.
    pub fn primary(&self) -> String {
        self.primary.as_ref().expect("a running server").url(&self.database)
    }

    pub fn standby(&self) -> String {
        self.standby.url(&self.database)
    }

    /// Kills the primary, which has no time to put anything in order.
    pub async fn kill_primary(&mut self) {
        let server = self.primary.take().expect("a running server");
        kill(server.pid());
        server.exited().await;
    }

    /// Makes the standby a server of its own.
    pub async fn promote(&self) {
        let options = self.standby.options("postgres");
        let mut connection = PgConnection::connect_with(&options).await.expect("a connection");
        let promote = sqlx::query_scalar("select pg_promote()");
        let promoted: bool = promote.fetch_one(&mut connection).await.expect("an answer");
        assert!(promoted, "it is promoted in time");
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

/// Adds a line to the settings of a server that does not run.
fn set(data: &Path, setting: &str) {
    let file = OpenOptions::new().append(true).open(cluster(data).join("postgresql.auto.conf"));
    writeln!(file.expect("settings"), "{setting}").expect("a line more");
}
