//! The life of a program: it starts, serves HTTP, reports what it does, and stops without losing work.
//!
//! [`run`] reads the settings, starts the telemetry and calls the program with a [`Runtime`], which spawns its
//! tasks and stops them. Each program serves its state and its metrics on an address of its own
//! ([`serve_admin`]).

mod admin;
mod entry;
mod files;
pub mod http;
mod lifecycle;
pub mod nats;
mod networks;
mod process;
mod public_url;
pub mod telemetry;
mod tls;

pub use assay_program::{parse, stop_signal};

pub use self::{
    admin::{AdminAddress, serve_admin},
    entry::{CommandLine, install_crypto, run, run_with_commands, threads},
    files::raise_file_limit,
    lifecycle::{Gate, Runtime, SHUTDOWN_DELAY},
    networks::Networks,
    process::{Process, Registration},
    public_url::PublicUrl,
    telemetry::trace,
    tls::{Tls, TlsConfig},
};
