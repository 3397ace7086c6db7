//! What every program of Assay is made of: its life from start to stop, its database, its servers
//! and connections, and how it is observed.

mod admin;
pub mod body;
mod database;
mod entry;
mod files;
pub mod grpc;
pub mod history;
pub mod http;
mod lifecycle;
pub mod list;
pub mod nats;
mod networks;
mod pace;
mod shares;
pub mod telemetry;
mod tls;
pub mod trace;
mod wakeups;

pub use self::{
    admin::serve_admin,
    database::{Alone, Database, DatabaseConfig, Migrate, begin, connect_options},
    entry::{Given, install_crypto, parse, run, run_or, stop_signal, threads},
    files::raise_file_limit,
    lifecycle::{Gate, Runtime},
    networks::Networks,
    pace::Pace,
    shares::{Share, Shares},
    tls::{Tls, TlsConfig},
    wakeups::{OfCustomer, Place, Wakeups},
};
