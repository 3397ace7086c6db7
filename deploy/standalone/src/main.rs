//! The `assay` program: all of Assay with one command.

mod command;
mod options;

use std::{io::ErrorKind, net::SocketAddr, process::ExitCode, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use assay::{Assay, Backends, Settings, backends::Servers};
use assay_identity::FirstSecret;
use assay_runtime::{
    AdminAddress, Gate, Runtime, install_crypto, parse, raise_file_limit, serve_admin, stop_signal,
    telemetry::Telemetry, threads,
};
use assay_servers::DataDir;
use secrecy::ExposeSecret;
use tokio::net::TcpListener;

use crate::options::Options;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = parse::<Options>();
    install_crypto();
    let done = threads().context("cannot start threads").and_then(|tokio| {
        tokio.block_on(async {
            match options.command.clone() {
                None => Box::pin(serve(options)).await,
                Some(command) => command.run(&options.backends, &options.settings.file_store).await,
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
    let telemetry = Telemetry::install("assay", &options.telemetry)?;
    raise_file_limit();
    let mut settings = options.settings;
    check_address(settings.edge.http_listen).await?;
    let data = DataDir::lock(&options.backends.data_dir)?;
    let in_data = |name| data.path().join(name);
    settings.mail.mail_dir.get_or_insert_with(|| in_data("mail"));
    settings
        .file_store
        .artifacts
        .get_or_insert_with(|| in_data("artifacts").to_string_lossy().into_owned());
    println!("Starting Assay with its data in {}", data.path().display());
    let (backends, servers) = tokio::select! {
        opened = options.backends.open(&data) => opened?,
        () = stop_signal() => return Ok(()),
    };
    let admin = Admin::start(&telemetry, options.admin).await;

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
    async fn start(telemetry: &Telemetry, listen: Option<AdminAddress>) -> Result<Self> {
        let runtime = Runtime::new("assay");
        telemetry.spawn_upkeep(&runtime);
        let programs = runtime.gate("programs");
        let mut address = None;
        if let Some(AdminAddress { admin_listen }) = listen {
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
    let has_console = settings.edge.console;
    let assay = tokio::select! {
        started = Assay::start(backends, settings) => started?,
        error = servers.failed() => return Err(error),
        () = stop_signal() => return Ok(()),
    };
    admin.programs.open();
    print_welcome(&assay, has_console, admin.address);
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

fn print_welcome(assay: &Assay, has_console: bool, admin: Option<SocketAddr>) {
    let url = format!("http://{}", assay.address);
    if has_console {
        println!("Console:        {url}");
    }
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
