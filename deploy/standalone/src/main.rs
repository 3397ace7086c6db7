//! `assay`: the whole service with one command.

use std::{
    fs,
    io::{ErrorKind, Write},
    net::SocketAddr,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use assay::{
    Assay, Backends, Settings,
    backends::{self, Servers},
};
use assay_auth::{SealConfig, new_seal_key};
use assay_execution::{DepotConfig, LeaseSettings};
use assay_gateway::EdgeConfig;
use assay_notification::WebhookConfig;
use assay_runtime::{
    Runtime, install_crypto, parse, stop_signal,
    telemetry::{LogFormat, Telemetry, TelemetryConfig},
};
use assay_servers::DataDir;
use clap::Parser;
use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpListener;
use url::Url;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Where in the data directory the keys are that secrets are stored under.
const KEYS_FILE: &str = "encryption-keys";

/// Test management: projects, test cases, executions, reports.
///
/// Runs all of Assay in one process, with a PostgreSQL and a NATS server of its own unless others
/// are named. Every variable `X` can also be given by a file, named in `X_FILE`.
#[derive(Parser)]
#[command(name = "assay", version)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// Where the interface is served: `/api` and `/docs`
    #[arg(long, env = "ASSAY_HTTP_LISTEN", default_value = "127.0.0.1:8080")]
    http_listen: SocketAddr,
    /// The directory of everything that outlives a run
    #[arg(long, env = "ASSAY_DATA_DIR", default_value = "data")]
    data_dir: PathBuf,
    /// A PostgreSQL server to use, as <postgres://user:password@host/postgres>; by default one is
    /// started
    #[arg(long, env = "ASSAY_DATABASE_URL", hide_env_values = true)]
    database_url: Option<SecretString>,
    /// A NATS server with JetStream to use; by default one is started
    #[arg(long, env = "ASSAY_NATS_URL", hide_env_values = true)]
    nats_url: Option<SecretString>,
    /// The email address of the first administrator
    #[arg(long, env = "ASSAY_ADMIN_EMAIL")]
    admin_email: Option<String>,
    /// The password of the first administrator; by default one is made, and printed once
    #[arg(long, env = "ASSAY_ADMIN_PASSWORD", hide_env_values = true)]
    admin_password: Option<SecretString>,
    /// The keys that secrets are stored under, as `id:key,id:key` with keys of 32 bytes in base64;
    /// by default one is made, and kept in the data directory
    #[arg(long, env = "ASSAY_ENCRYPTION_KEYS", hide_env_values = true)]
    encryption_keys: Option<SecretString>,
    /// Where users reach Assay, such as <https://assay.example.org>: what the links in mails begin
    /// with; by default where it is served
    #[arg(long, env = "ASSAY_PUBLIC_URL")]
    public_url: Option<Url>,
    /// The domain that the customers' hosts are in: users of `acme.<domain>` log in to the customer
    /// with the subdomain `acme`
    #[arg(long, env = "ASSAY_BASE_DOMAIN")]
    base_domain: Option<String>,
    /// The SMTP server that mails are sent by, as <smtps://user:password@host>; without one they are
    /// written to files
    #[arg(long, env = "ASSAY_SMTP_URL", hide_env_values = true)]
    smtp_url: Option<SecretString>,
    /// Who mails are from, as `Assay <assay@example.org>`
    #[arg(long, env = "ASSAY_MAIL_FROM")]
    mail_from: Option<String>,
    /// Where mails are written to without an SMTP server; by default `mail` in the data directory
    #[arg(long, env = "ASSAY_MAIL_DIR")]
    mail_dir: Option<PathBuf>,
    #[command(flatten)]
    edge: EdgeConfig,
    /// Where artifacts are kept: a folder, or a bucket as `s3://bucket/folder`; by default
    /// `artifacts` in the data directory
    #[arg(long, env = "ASSAY_ARTIFACTS")]
    artifacts: Option<String>,
    /// The address of an S3-compatible service, such as <https://minio.example.org>; by default AWS
    #[arg(long, env = "ASSAY_S3_ENDPOINT")]
    s3_endpoint: Option<Url>,
    /// The region of the bucket
    #[arg(long, env = "ASSAY_S3_REGION", default_value = "us-east-1")]
    s3_region: String,
    /// The access key; by default as AWS grants it to the machine
    #[arg(long, env = "ASSAY_S3_ACCESS_KEY_ID", requires = "s3_secret_access_key")]
    s3_access_key_id: Option<String>,
    /// The secret of the access key
    #[arg(long, env = "ASSAY_S3_SECRET_ACCESS_KEY", hide_env_values = true)]
    s3_secret_access_key: Option<SecretString>,
    #[command(flatten)]
    leases: LeaseSettings,
    /// How many days notifications are kept
    #[arg(
        long,
        env = "ASSAY_NOTIFICATION_RETENTION_DAYS",
        default_value_t = 365,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    notification_retention_days: u32,
    #[command(flatten)]
    webhooks: WebhookConfig,
    /// What is logged, as tracing directives: `info`, or `warn,assay_catalog=debug`
    #[arg(long, env = "ASSAY_LOG", default_value = "warn")]
    log: String,
    /// How log lines are written
    #[arg(long, env = "ASSAY_LOG_FORMAT", default_value = "text")]
    log_format: LogFormat,
    /// Where traces are sent to by OTLP over gRPC; none are sent without it
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,
}

/// What to do instead of running Assay.
#[derive(Clone, Copy, clap::Subcommand)]
enum Command {
    /// Makes the Assay that is running sign tokens with a new key from a few minutes on
    RotateKeys,
    /// Tells what the Assay that is running stores or shows of executions that is not as their
    /// results say, and fails if there is anything
    Verify,
    /// Mends what `verify` tells of
    Rebuild,
    /// Has the Assay that is running store all secrets under the first of its encryption keys, so
    /// that the others can be taken away
    Reseal,
}

fn main() -> ExitCode {
    let options = parse::<Options>();
    install_crypto();
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let done = tokio.context("no threads").and_then(|tokio| {
        tokio.block_on(async {
            match options.command {
                None => serve(options).await,
                Some(Command::RotateKeys) => rotate_keys(&options).await,
                Some(Command::Reseal) => reseal(&options).await,
                Some(Command::Verify) => verify(&options).await,
                Some(Command::Rebuild) => rebuild(&options).await,
            }
        })
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("assay: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn rotate_keys(options: &Options) -> Result<()> {
    let ([identity, ..], seal) = running(options)?;
    let kid = assay_identity::rotate_keys(&identity, &seal).await?;
    println!("Tokens are signed with the key {kid} from two minutes on");
    Ok(())
}

async fn verify(options: &Options) -> Result<()> {
    let database_url = options.database_url.as_ref();
    let [_, catalog, execution, _] = backends::of_running(&options.data_dir, database_url)?;
    let differences =
        assay::verify(&execution, &catalog, |difference| println!("{difference}")).await?;
    if differences > 0 {
        bail!("{differences} differences; `assay rebuild` mends them");
    }
    println!("All is as the results say");
    Ok(())
}

async fn rebuild(options: &Options) -> Result<()> {
    let database_url = options.database_url.as_ref();
    let [_, _, execution, _] = backends::of_running(&options.data_dir, database_url)?;
    let mended = assay::rebuild(&execution).await?;
    println!("Mended {mended} records; the catalog hears of all executions again");
    Ok(())
}

async fn reseal(options: &Options) -> Result<()> {
    let ([identity, catalog, _, notification], seal) = running(options)?;
    let count = assay_identity::reseal(&identity, &seal).await?
        + assay_catalog::reseal(&catalog, &seal).await?
        + assay_notification::reseal(&notification, &seal).await?;
    println!("{count} records are stored under another encryption key than before");
    Ok(())
}

/// The databases of the Assay that is running, and what its secrets are stored under.
fn running(options: &Options) -> Result<([SecretString; 4], SealConfig)> {
    let data = &options.data_dir;
    let databases = backends::of_running(data, options.database_url.as_ref())?;
    let seal = stored_seal_config(data, options.encryption_keys.clone())?;
    let seal = seal.with_context(|| format!("{} holds no encryption keys", data.display()))?;
    Ok((databases, seal))
}

async fn serve(options: Options) -> Result<()> {
    let telemetry = Telemetry::install(
        "assay",
        &TelemetryConfig {
            log: options.log,
            log_format: options.log_format,
            otlp_endpoint: options.otlp_endpoint,
        },
    )?;
    check_address(options.http_listen).await?;
    let data = DataDir::lock(&options.data_dir)?;
    let seal = seal_config(data.path(), options.encryption_keys)?;
    let opening = backends::open(&data, options.database_url.as_ref(), options.nats_url);
    let (backends, servers) = tokio::select! {
        opened = opening => opened?,
        () = stop_signal() => return Ok(()),
    };
    let settings = Settings {
        http_listen: options.http_listen,
        admin_email: options.admin_email,
        admin_password: options.admin_password,
        seal,
        public_url: options.public_url,
        base_domain: options.base_domain,
        smtp_url: options.smtp_url,
        mail_from: options.mail_from,
        mail_dir: options.mail_dir.unwrap_or_else(|| data.path().join("mail")),
        edge: options.edge,
        depot: DepotConfig {
            artifacts: options
                .artifacts
                .unwrap_or_else(|| data.path().join("artifacts").to_string_lossy().into_owned()),
            s3_endpoint: options.s3_endpoint,
            s3_region: options.s3_region,
            s3_access_key_id: options.s3_access_key_id,
            s3_secret_access_key: options.s3_secret_access_key,
        },
        leases: options.leases,
        notification_retention_days: options.notification_retention_days,
        webhooks: options.webhooks,
    };
    let metrics = Runtime::new("metrics");
    telemetry.keep_up(&metrics);

    let served = run(&backends, settings, &servers).await;
    let stopped = servers.stop().await;
    metrics.stop(Duration::from_secs(1)).await?;
    telemetry.flush().await;
    served.and(stopped)
}

/// Runs the programs until a signal, or until one of them or a server fails.
async fn run(backends: &Backends, settings: Settings, servers: &Servers) -> Result<()> {
    let assay = tokio::select! {
        started = Assay::start(backends, settings) => started?,
        error = servers.failed() => return Err(error),
        () = stop_signal() => return Ok(()),
    };
    print_welcome(&assay);
    let failed = tokio::select! {
        () = stop_signal() => Ok(()),
        () = assay.stopped() => Ok(()),
        error = servers.failed() => Err(error),
    };
    let stopped = tokio::select! {
        stopped = assay.stop() => stopped,
        () = stop_signal() => Err(anyhow!("stopped by a second signal")),
    };
    failed.and(stopped)
}

/// Says early that the address cannot be used, before servers are started for nothing.
async fn check_address(address: SocketAddr) -> Result<()> {
    match TcpListener::bind(address).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(
            "{address} is in use by another program: stop that, or choose another address with \
             ASSAY_HTTP_LISTEN"
        ),
        Err(error) => {
            Err(error).with_context(|| format!("cannot listen on {address}; see ASSAY_HTTP_LISTEN"))
        }
    }
}

/// The keys that secrets are stored under; made if there are none.
fn seal_config(data: &Path, given: Option<SecretString>) -> Result<SealConfig> {
    if let Some(stored) = stored_seal_config(data, given)? {
        return Ok(stored);
    }
    let encryption_keys = new_seal_key("1")?;
    write_secret(&data.join(KEYS_FILE), encryption_keys.expose_secret())?;
    Ok(SealConfig { encryption_keys })
}

/// The keys that were given, else those in the data directory, if there are any.
fn stored_seal_config(data: &Path, given: Option<SecretString>) -> Result<Option<SealConfig>> {
    if let Some(encryption_keys) = given {
        return Ok(Some(SealConfig { encryption_keys }));
    }
    let file = data.join(KEYS_FILE);
    match fs::read_to_string(&file) {
        Ok(keys) => Ok(Some(SealConfig { encryption_keys: keys.trim().into() })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Writes a file that only this user can read.
fn write_secret(file: &Path, secret: &str) -> Result<()> {
    let mut options = fs::File::options();
    let mut written = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .with_context(|| format!("cannot write {}", file.display()))?;
    writeln!(written, "{secret}")?;
    written.sync_all()?;
    Ok(())
}

fn print_welcome(assay: &Assay) {
    let url = format!("http://{}", assay.address);
    println!("Assay is ready: {url}/api");
    println!("Documentation:  {url}/docs");
    match &assay.first_login {
        Some(login) => {
            println!("Log in as:      {}", login.email);
            println!(
                "Password:       {}   (made now; shown only this once)",
                login.password.expose_secret()
            );
        }
        None => println!("Log in:         POST {url}/api/token/login with Email and Password"),
    }
    println!("Ctrl-C stops it.");
}
