//! A private PostgreSQL.

mod cluster;
mod home;
mod programs;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Error, Result, bail};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};
use tokio::time::{Instant, sleep};

use crate::DataDir;
use crate::process::{POLL, Process, Stop, command, rotate};
use home::Home;
use programs::Programs;

const PROGRAM: &str = "postgres";

/// The one role: the superuser of a cluster that is ours alone.
const ROLE: &str = "assay";

/// Names the socket only; the server does not listen on any network.
const PORT: u16 = 5432;

/// After a crash the server repeats up to a gigabyte of writes before it answers.
const START_DEADLINE: Duration = Duration::from_mins(2);

/// How long processes of a killed server may take to notice, and to let go of its memory.
const LET_GO_DEADLINE: Duration = Duration::from_secs(10);

/// How to run a private PostgreSQL.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    pub durability: Durability,
    /// The directory of `postgres` and `initdb`, if they are not to be looked for.
    pub programs: Option<PathBuf>,
}

/// What data must survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure.
    #[default]
    Full,
    /// Nothing but a restart of the server: for tests, which want speed and many connections.
    None,
}

impl Durability {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Full => &["shared_buffers=128MB", "max_connections=100"],
            Self::None => &[
                "shared_buffers=128MB",
                "max_connections=300",
                "fsync=off",
                "synchronous_commit=off",
                "full_page_writes=off",
            ],
        }
    }
}

/// A running PostgreSQL that only this user, and root, can reach.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    socket: PathBuf,
    _data: DataDir,
}

impl Postgres {
    /// Starts the server, after making a cluster if the data directory has none, and waits until
    /// it answers.
    pub async fn start(data: &DataDir, options: &PostgresOptions) -> Result<Self> {
        let home = Home::of(data.path())?;
        let programs = Programs::find(options.programs.as_deref(), &home)?;
        cluster::stop_left_behind(&home.cluster()).await?;

        let log = data.path().join("postgres.log");
        rotate(&log);
        if !home.cluster().exists() {
            cluster::initialize(&programs, &home, options.durability, &log).await?;
        }
        let deadline = Instant::now() + LET_GO_DEADLINE;
        loop {
            let server = Self::spawn(data, &programs, &home, options.durability, &log).await?;
            match server.answer().await {
                Ok(()) => return Ok(server),
                Err(error) if Instant::now() > deadline || !is_in_use(&error) => return Err(error),
                Err(_) => sleep(POLL).await,
            }
        }
    }

    async fn spawn(
        data: &DataDir,
        programs: &Programs,
        home: &Home,
        durability: Durability,
        log: &Path,
    ) -> Result<Self> {
        let socket = home.make_socket_dir()?;
        // Names a process that is gone, or a stranger that has its number now.
        let _ = fs::remove_file(socket.join(format!(".s.PGSQL.{PORT}.lock")));

        let mut command = command(&programs.postgres, &home.path, Stop::Interrupt);
        home.account.assign(&mut command);
        command.arg("-D").arg(home.cluster());
        command.arg("-c").arg(setting_of_path("unix_socket_directories", &socket));
        let settings = [
            "listen_addresses=",
            "timezone=UTC",
            "log_timezone=UTC",
            // Errors are told to the client, who logs them; here they would only pile up.
            "log_min_messages=log",
            "log_min_error_statement=panic",
            "log_checkpoints=off",
        ];
        for setting in settings.iter().chain(durability.settings()) {
            command.args(["-c", setting]);
        }
        command.args(["-c", &format!("port={PORT}")]);
        let process = Process::spawn(PROGRAM, command, Stop::Interrupt, log).await?;
        Ok(Self { process, socket, _data: data.clone() })
    }

    /// Waits until the server lets us in.
    async fn answer(&self) -> Result<()> {
        let options = self.options("postgres").disable_statement_logging();
        let connected = async {
            loop {
                if let Ok(connection) = PgConnection::connect_with(&options).await {
                    return connection.close().await;
                }
                sleep(POLL).await;
            }
        };
        tokio::select! {
            closed = connected => Ok(closed?),
            failure = self.process.failed() => Err(failure),
            () = sleep(START_DEADLINE) => {
                bail!("{PROGRAM} lets nobody in; {}", self.process.last_words())
            }
        }
    }

    /// How to connect to a database; `postgres` is always there.
    pub fn options(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket)
            .port(PORT)
            .username(ROLE)
            .database(database)
            .ssl_mode(PgSslMode::Disable)
    }

    /// The same as a URL, which psql understands too.
    pub fn url(&self, database: &str) -> String {
        url(&self.socket.to_string_lossy(), database)
    }

    /// The URL of a database of the server that another process runs in a data directory.
    pub fn url_of_running(data: &Path, database: &str) -> Result<String> {
        let file = data.join("postgres/cluster/postmaster.pid");
        // Written by the server while it runs: its fifth line is the directory of its socket.
        let lines = fs::read_to_string(&file)
            .with_context(|| format!("no PostgreSQL runs in {}", data.display()))?;
        let socket = lines.lines().nth(4).filter(|socket| !socket.is_empty());
        let socket = socket.with_context(|| format!("{} names no socket", file.display()))?;
        Ok(url(socket, database))
    }

    /// Makes a database, unless there is one of that name.
    pub async fn create_database_if_missing(&self, database: &str) -> Result<()> {
        let mut connection = PgConnection::connect_with(&self.options("postgres")).await?;
        let name = database.replace('"', "\"\"");
        let statement = AssertSqlSafe(format!(r#"create database "{name}""#));
        match sqlx::raw_sql(statement).execute(&mut connection).await {
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P04") => {}
            done => {
                done.with_context(|| format!("cannot make the database {database}"))?;
            }
        }
        Ok(connection.close().await?)
    }

    /// The id of the server's first process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until the server ends without having been told to, and says how.
    pub async fn exited(&self) -> Error {
        self.process.failed().await
    }

    /// Ends all connections, stops the server and waits until it is gone.
    pub async fn stop(self) -> Result<()> {
        self.process.stop().await?;
        let _ = fs::remove_dir(&self.socket);
        Ok(())
    }
}

fn url(socket: &str, database: &str) -> String {
    let (socket, database) = (percent_encoded(socket), percent_encoded(database));
    format!("postgres://{ROLE}@localhost:{PORT}/{database}?host={socket}&sslmode=disable")
}

/// Whether the server did not start because processes of the last one are still there.
fn is_in_use(error: &Error) -> bool {
    error.to_string().contains("pre-existing shared memory block")
}

/// A setting whose value is a list of paths.
fn setting_of_path(name: &str, path: &Path) -> String {
    format!("{name}=\"{}\"", path.to_string_lossy().replace('"', "\"\""))
}

fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' | b'/' => char::from(byte).to_string(),
        _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(encode).collect()
}
