//! The `assay` program: all of Assay with one command.

mod command;
mod keys;
mod options;

use std::{io::ErrorKind, net::SocketAddr, process::ExitCode, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use assay::{
    Assay, Backends, Settings,
    backends::{self, Servers},
};
use assay_execution::FileStoreConfig;
use assay_identity::FirstSecret;
use assay_runtime::{
    Gate, Runtime, install_crypto, parse, raise_file_limit, serve_admin, stop_signal,
    telemetry::{Telemetry, TelemetryConfig},
    threads,
};
use assay_servers::DataDir;
use secrecy::ExposeSecret;
use tokio::net::TcpListener;

use crate::{keys::seal_config, options::Options};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = parse::<Options>();
    install_crypto();
    let done = threads().context("cannot start threads").and_then(|tokio| {
        tokio.block_on(async {
            match options.command.clone() {
                None => serve(options).await,
                Some(command) => command.run(&options).await,
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

async fn serve(options: Options) -> Result<()> {
    let telemetry = Telemetry::install(
        "assay",
        &TelemetryConfig {
            log: options.log,
            log_format: options.log_format,
            otlp_endpoint: options.otlp_endpoint,
        },
    )?;
    raise_file_limit();
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
        file_store: FileStoreConfig {
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
    let admin = Admin::start(&telemetry, options.admin_listen).await;

    let served = match &admin {
        Ok(admin) => run(&backends, settings, &servers, admin).await,
        Err(_) => Ok(()),
    };
    let stopped = servers.stop().await;
    admin?.runtime.stop(Duration::from_secs(1)).await?;
    telemetry.flush().await;
    served.and(stopped)
}

/// Health and metrics of the process.
struct Admin {
    runtime: Runtime,
    /// Closed until all programs are ready.
    programs: Gate,
    /// Address of the admin endpoints, if they are served.
    address: Option<SocketAddr>,
}

impl Admin {
    async fn start(telemetry: &Telemetry, admin_listen: Option<SocketAddr>) -> Result<Self> {
        let runtime = Runtime::new("assay");
        telemetry.spawn_upkeep(&runtime);
        let programs = runtime.gate("programs");
        let mut address = None;
        if let Some(admin_listen) = admin_listen {
            let served = serve_admin(&runtime, admin_listen, telemetry.metrics()).await;
            address = Some(served.with_context(|| {
                format!("cannot listen on {admin_listen}; check ASSAY_ADMIN_LISTEN")
            })?);
        }
        Ok(Self { runtime, programs, address })
    }
}

/// Runs the programs until a signal, or until one of them or a server fails.
async fn run(
    backends: &Backends,
    settings: Settings,
    servers: &Servers,
    admin: &Admin,
) -> Result<()> {
    let assay = tokio::select! {
        started = Assay::start(backends, settings) => started?,
        error = servers.failed() => return Err(error),
        () = stop_signal() => return Ok(()),
    };
    admin.programs.open();
    print_welcome(&assay, admin.address);
    let failed = tokio::select! {
        () = stop_signal() => Ok(()),
        () = assay.stopped() => Ok(()),
        error = servers.failed() => Err(error),
    };
    // `/readyz` fails from now on.
    admin.runtime.stopping().cancel();
    let stopped = tokio::select! {
        stopped = assay.stop() => stopped,
        () = stop_signal() => Err(anyhow!("stopped by a second signal")),
    };
    failed.and(stopped)
}

/// Fails before servers are started if the address cannot be used.
async fn check_address(address: SocketAddr) -> Result<()> {
    match TcpListener::bind(address).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AddrInUse => bail!(
            "{address} is in use by another program: stop it or set ASSAY_HTTP_LISTEN to another \
             address"
        ),
        Err(error) => Err(error)
            .with_context(|| format!("cannot listen on {address}; check ASSAY_HTTP_LISTEN")),
    }
}

fn print_welcome(assay: &Assay, admin: Option<SocketAddr>) {
    let url = format!("http://{}", assay.address);
    println!("Assay is ready: {url}/api");
    println!("Documentation:  {url}/docs");
    if let Some(admin) = admin {
        println!("Metrics:        http://{admin}/metrics");
    }
    match &assay.first_login {
        Some(login) => {
            println!("Email:          {}", login.email);
            match &login.secret {
                FirstSecret::Password(password) => {
                    let password = password.expose_secret();
                    println!("Password:       {password}   (generated; shown only once)");
                }
                FirstSecret::Link(link) => {
                    println!("Set password:   {}", link.expose_secret());
                }
            }
        }
        None => println!("Log in:         POST {url}/api/token/login with Email and Password"),
    }
    println!("Press Ctrl-C to stop.");
}
