//! The start of a system.

use std::{
    fs::Permissions,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use assay_servers::{DataDir, Nats, Postgres, PostgresOptions};
use serde_json::json;
use tokio::time::sleep;

use super::System;
use crate::{
    client::Client,
    fixture::Fixture,
    monolith::{
        self,
        floor::{self, CUSTOMER, Floor},
    },
    program::{Program, free_address},
    row::Row,
    shape::Shape,
};

pub(crate) const EMAIL: &str = "ada@example.org";
pub(crate) const PASSWORD: &str = "a long enough passphrase";

/// An encryption key for records that exist as long as the measurement lasts.
const ENCRYPTION_KEY: &str = "1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

const SERVICES: [&str; 4] = ["identity", "catalog", "execution", "notification"];

/// Time after which programs that rest have given back the memory of their start.
const UNTIL_IDLE: Duration = Duration::from_secs(10);

/// Directories of programs and data.
#[derive(Clone)]
pub(crate) struct Launch {
    /// Directory of the programs of Assay.
    pub(crate) programs: PathBuf,
    /// Directory in which databases are created.
    pub(crate) data: PathBuf,
}

impl Launch {
    /// Starts a system and creates its data.
    pub(crate) async fn start(&self, shape: Shape, rows: &[Row]) -> Result<System> {
        // PostgreSQL may run under another account.
        let dir = tempfile::Builder::new()
            .prefix("assay-bench-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(&self.data)?;
        let data = DataDir::lock(dir.path())?;
        let postgres = Postgres::start(&data, &PostgresOptions::default()).await?;
        let nats = if shape.is_assay() { Some(Nats::start(&data, None).await?) } else { None };
        let nats_url = nats.as_ref().map(|nats| nats.url().to_owned()).unwrap_or_default();
        let (programs, gateways) = match shape {
            Shape::Baseline => baseline(&postgres).await?,
            Shape::Line => line(&postgres).await?,
            Shape::One => self.one(&postgres, &nats_url, data.path())?,
            Shape::Five => self.separate(&postgres, &nats_url, data.path(), 1).await?,
            Shape::Replicas => self.separate(&postgres, &nats_url, data.path(), 2).await?,
        };
        let floor = if shape.is_assay() {
            None
        } else {
            let (options, url) = (postgres.options("monolith"), postgres.url("monolith"));
            Some(Floor::create(options, url).await?)
        };
        let mut system = System {
            shape,
            fixture: Fixture::default(),
            first_start: 0.0,
            idle: Vec::new(),
            floor,
            gateways,
            token: String::new(),
            programs,
            postgres,
            nats,
            dir,
        };
        system.first_start = system.start().await?;
        system.rest().await;
        sleep(UNTIL_IDLE).await;
        system.idle = system.memory()?;
        if shape.is_assay() {
            system.token = log_in(system.gateways[0]).await?;
            system.fixture = Fixture::create(&system.client(), rows).await?;
        } else {
            system.token = monolith::token_for(CUSTOMER)?;
            system.fixture = floor::fixture();
        }
        system.rest().await;
        Ok(system)
    }

    fn one(&self, postgres: &Postgres, nats: &str, data: &Path) -> Result<Start> {
        let (listen, admin) = (free_address()?, free_address()?);
        let mut settings = settings(nats, data, listen, admin);
        settings.push(("ASSAY_DATABASE_URL", postgres.url("postgres")));
        settings.push(("ASSAY_DATA_DIR", data.join("assay").display().to_string()));
        let program = self.program("assay", &settings, admin);
        Ok((vec![program], vec![listen]))
    }

    /// Starts each program several times. Every gateway calls services of its own, as all replicas
    /// are on one address: names with several addresses need a name server.
    async fn separate(
        &self,
        postgres: &Postgres,
        nats: &str,
        data: &Path,
        replicas: usize,
    ) -> Result<Start> {
        for service in SERVICES {
            postgres.create_database_if_missing(service).await?;
        }
        let (mut programs, mut gateways) = (Vec::new(), Vec::new());
        for _ in 0..replicas {
            let listen = free_address()?;
            let grpc = SERVICES.map(|_| free_address());
            let mut urls = Vec::new();
            for (service, address) in SERVICES.iter().zip(&grpc) {
                let address = address.as_ref().ok().context("no free address")?;
                urls.push((url_setting(service), format!("http://{address}")));
            }
            for (service, address) in SERVICES.iter().zip(grpc) {
                let admin = free_address()?;
                let mut settings = settings(nats, data, listen, admin);
                settings.extend(urls.clone());
                settings.push(("ASSAY_DATABASE_URL", postgres.url(service)));
                settings.push(("ASSAY_GRPC_LISTEN", address?.to_string()));
                programs.push(self.program(&format!("assay-{service}"), &settings, admin));
            }
            let admin = free_address()?;
            let mut settings = settings(nats, data, listen, admin);
            settings.extend(urls);
            programs.push(self.program("assay-gateway", &settings, admin));
            gateways.push(listen);
        }
        Ok((programs, gateways))
    }

    fn program(&self, name: &str, settings: &[(&str, String)], admin: SocketAddr) -> Program {
        let short = name.strip_prefix("assay-").unwrap_or(name);
        Program::new(short, &self.programs.join(name), &[], settings, (admin, "/readyz"))
    }
}

/// Programs that can be started, and the addresses of their gateways.
type Start = (Vec<Program>, Vec<SocketAddr>);

async fn baseline(postgres: &Postgres) -> Result<Start> {
    postgres.create_database_if_missing("monolith").await?;
    let listen = free_address()?;
    let arguments = [
        "monolith".to_owned(),
        format!("--listen={listen}"),
        format!("--database-url={}", postgres.url("monolith")),
    ];
    let program = std::env::current_exe()?;
    let program = Program::new("monolith", &program, &arguments, &[], (listen, "/"));
    Ok((vec![program], vec![listen]))
}

async fn line(postgres: &Postgres) -> Result<Start> {
    postgres.create_database_if_missing("monolith").await?;
    let (listen, grpc) = (free_address()?, free_address()?);
    let program = std::env::current_exe()?;
    let store = [
        "store".to_owned(),
        format!("--listen={grpc}"),
        format!("--database-url={}", postgres.url("monolith")),
    ];
    let front =
        ["front".to_owned(), format!("--listen={listen}"), format!("--store=http://{grpc}")];
    let store = Program::new("store", &program, &store, &[], (grpc, "/"));
    let front = Program::new("front", &program, &front, &[], (listen, "/"));
    Ok((vec![store, front], vec![listen]))
}

/// Returns the settings of all programs. None limits the rate of requests.
fn settings(
    nats: &str,
    data: &Path,
    listen: SocketAddr,
    admin: SocketAddr,
) -> Vec<(&'static str, String)> {
    vec![
        ("ASSAY_HTTP_LISTEN", listen.to_string()),
        ("ASSAY_ADMIN_LISTEN", admin.to_string()),
        ("ASSAY_PUBLIC_URL", format!("http://{listen}")),
        ("ASSAY_NATS_URL", nats.to_owned()),
        ("ASSAY_ENCRYPTION_KEYS", ENCRYPTION_KEY.to_owned()),
        ("ASSAY_ARTIFACTS", data.join("artifacts").display().to_string()),
        ("ASSAY_MAIL_DIR", data.join("mail").display().to_string()),
        ("ASSAY_ADMIN_EMAIL", EMAIL.to_owned()),
        ("ASSAY_ADMIN_PASSWORD", PASSWORD.to_owned()),
        ("ASSAY_REQUESTS_PER_ADDRESS", "0".to_owned()),
        ("ASSAY_REQUESTS_PER_CUSTOMER", "0".to_owned()),
        ("ASSAY_WEBHOOK_NETWORKS", "127.0.0.1".to_owned()),
        ("ASSAY_LOG", "warn".to_owned()),
        ("ASSAY_LOG_FORMAT", "text".to_owned()),
    ]
}

fn url_setting(service: &str) -> &'static str {
    match service {
        "identity" => "ASSAY_IDENTITY_URL",
        "catalog" => "ASSAY_CATALOG_URL",
        "execution" => "ASSAY_EXECUTION_URL",
        _ => "ASSAY_NOTIFICATION_URL",
    }
}

async fn log_in(gateway: SocketAddr) -> Result<String> {
    let client = Client { address: gateway, token: String::new() };
    let login = json!({"Email": EMAIL, "Password": PASSWORD});
    let token = client.post("/api/token/login", login).await?;
    Ok(token["token"].as_str().context("no token")?.to_owned())
}
