//! A private PostgreSQL server.

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
use crate::process::{POLL_INTERVAL, Process, Stop, command, rotate};
use home::Home;
use programs::Programs;

const PROGRAM: &str = "postgres";

/// The only role, a superuser.
const ROLE: &str = "assay";

/// Port in the name of the socket. The server does not listen on a network.
const PORT: u16 = 5432;

/// Maximum duration of a start. After a crash the server replays up to a gigabyte of writes.
const START_DEADLINE: Duration = Duration::from_mins(2);

/// Maximum time until processes of a killed server have released its shared memory.
const RELEASE_DEADLINE: Duration = Duration::from_secs(10);

/// Options of a private PostgreSQL.
#[derive(Clone, Debug, Default)]
pub struct PostgresOptions {
    pub durability: Durability,
    /// Directory of `postgres` and `initdb`. Searched for if not given.
    pub programs: Option<PathBuf>,
}

/// The failures that data survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// A power failure.
    #[default]
    Full,
    /// Only a restart of the server: for tests, which need speed and many connections.
    None,
}

impl Durability {
    fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Full => &["shared_buffers=128MB", "max_connections=100"],
            Self::None => &[
                "shared_buffers=128MB",
                "max_connections=400",
                "fsync=off",
                "synchronous_commit=off",
                "full_page_writes=off",
            ],
        }
    }
}

/// A running PostgreSQL that only this user and root can reach.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    socket: PathBuf,
    programs: PathBuf,
    _data: DataDir,
}

impl Postgres {
    /// Starts the server, creates a cluster if the data directory has none, and waits until the
    /// server responds.
    pub async fn start(data: &DataDir, options: &PostgresOptions) -> Result<Self> {
        let home = Home::of(data.path())?;
        let programs = Programs::find(options.programs.as_deref(), &home)?;
        cluster::stop_left_behind(&home.cluster()).await?;

        let log = data.path().join("postgres.log");
        rotate(&log);
        if !home.cluster().exists() {
            cluster::initialize(&programs, &home, options.durability, &log).await?;
        }
        let deadline = Instant::now() + RELEASE_DEADLINE;
        loop {
            let server = Self::spawn(data, &programs, &home, options.durability, &log).await?;
            match server.wait_until_ready().await {
                Ok(()) => return Ok(server),
                Err(error) if Instant::now() > deadline || !is_in_use(&error) => return Err(error),
                Err(_) => sleep(POLL_INTERVAL).await,
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
        // Left by a process that has exited, whose id another one may have now.
        let _ = fs::remove_file(socket.join(format!(".s.PGSQL.{PORT}.lock")));

        let mut command = command(&programs.postgres, &home.path, Stop::Interrupt);
        home.account.assign(&mut command);
        command.arg("-D").arg(home.cluster());
        command.arg("-c").arg(setting_of_path("unix_socket_directories", &socket));
        let settings = [
            "listen_addresses=",
            "timezone=UTC",
            "log_timezone=UTC",
            // Clients log the errors that they receive.
            "log_min_messages=log",
            "log_min_error_statement=panic",
            "log_checkpoints=off",
        ];
        for setting in settings.iter().chain(durability.settings()) {
            command.args(["-c", setting]);
        }
        command.args(["-c", &format!("port={PORT}")]);
        let process = Process::spawn(PROGRAM, command, Stop::Interrupt, log).await?;
        let programs = programs.postgres.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Self { process, socket, programs, _data: data.clone() })
    }

    /// Waits until the server accepts connections.
    async fn wait_until_ready(&self) -> Result<()> {
        let options = self.options("postgres").disable_statement_logging();
        let connected = async {
            loop {
                if let Ok(connection) = PgConnection::connect_with(&options).await {
                    return connection.close().await;
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            closed = connected => Ok(closed?),
            failure = self.process.failed() => Err(failure),
            () = sleep(START_DEADLINE) => {
                bail!("{PROGRAM} does not accept connections; {}", self.process.log_tail())
            }
        }
    }

    /// Returns the options of connections to a database; `postgres` always exists.
    pub fn options(&self, database: &str) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .socket(&self.socket)
            .port(PORT)
            .username(ROLE)
            .database(database)
            .ssl_mode(PgSslMode::Disable)
    }

    /// Returns the URL of a database, which also works with psql.
    pub fn url(&self, database: &str) -> String {
        url(&self.socket.to_string_lossy(), database)
    }

    /// Returns the URL of a database of the server that another process runs in a data directory.
    pub fn url_of_running(data: &Path, database: &str) -> Result<String> {
        let file = data.join("postgres/cluster/postmaster.pid");
        // The server writes this file; the fifth line is the directory of its socket.
        let lines = fs::read_to_string(&file)
            .with_context(|| format!("no PostgreSQL runs in {}", data.display()))?;
        let socket = lines.lines().nth(4).filter(|socket| !socket.is_empty());
        let socket = socket.with_context(|| format!("{} has no socket", file.display()))?;
        Ok(url(socket, database))
    }

    /// Creates a database, unless it exists.
    pub async fn create_database_if_missing(&self, database: &str) -> Result<()> {
        // Creating a database is slow.
        let options = self.options("postgres").disable_statement_logging();
        let mut connection = PgConnection::connect_with(&options).await?;
        let name = database.replace('"', "\"\"");
        let statement = AssertSqlSafe(format!(r#"create database "{name}""#));
        match sqlx::raw_sql(statement).execute(&mut connection).await {
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P04") => {}
            done => {
                done.with_context(|| format!("cannot create the database {database}"))?;
            }
        }
        Ok(connection.close().await?)
    }

    /// Returns the directory of the server's programs, such as `pg_dump`.
    pub fn programs(&self) -> &Path {
        &self.programs
    }

    /// Returns the id of the server's main process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Waits until the server exits unexpectedly, and returns the error.
    pub async fn exited(&self) -> Error {
        self.process.failed().await
    }

    /// Closes all connections, stops the server and waits until it has exited.
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

/// Whether the server did not start because processes of the last one still run.
fn is_in_use(error: &Error) -> bool {
    error.to_string().contains("pre-existing shared memory block")
}

/// Formats a setting whose value is a list of paths.
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
