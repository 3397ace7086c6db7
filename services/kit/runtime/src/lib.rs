//! Common parts of all programs of Assay: startup and shutdown, database, servers, connections and
//! telemetry.

mod admin;
pub mod body;
mod database;
mod entry;
mod files;
mod gather;
pub mod grpc;
pub mod history;
pub mod http;
mod lifecycle;
pub mod list;
pub mod nats;
mod networks;
mod notifier;
pub mod parts;
mod process;
mod public_url;
mod shares;
pub mod telemetry;
mod throttle;
mod tls;

pub use assay_program::{parse, stop_signal};

pub use self::{
    admin::{AdminAddress, serve_admin},
    database::{
        Database, DatabaseConfig, Migrate, PoolConfig, begin, connect_options, exclusively,
    },
    entry::{CommandLine, install_crypto, run, run_with_commands, threads},
    files::raise_file_limit,
    gather::{Gather, LARGEST_BATCH},
    lifecycle::{Gate, Runtime},
    networks::Networks,
    notifier::{Notifier, OfCustomer, Waiter},
    process::Process,
    public_url::PublicUrl,
    shares::{Share, Shares},
    telemetry::trace,
    throttle::{Throttle, pause_after, rest},
    tls::{Tls, TlsConfig},
};
