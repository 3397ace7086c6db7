//! Private PostgreSQL and NATS servers, for the standalone program and for tests.
//!
//! Both are started from programs that are installed on the machine, and only reachable from it.
//! Their files are in a [`DataDir`], which one process at a time can lock:
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use assay_servers::{DataDir, Nats, Postgres, PostgresOptions};
//!
//! let data = DataDir::lock("data")?;
//! let postgres = Postgres::start(&data, &PostgresOptions::default()).await?;
//! let nats = Nats::start(&data, None).await?;
//! postgres.create_database_if_missing("catalog").await?;
//!
//! let pool = sqlx::PgPool::connect_with(postgres.options("catalog")).await?;
//! tokio::select! {
//!     failure = postgres.exited() => return Err(failure),
//!     failure = nats.exited() => return Err(failure),
//!     // … the program's work
//! }
//!
//! nats.stop().await?;
//! postgres.stop().await?;
//! # Ok(())
//! # }
//! ```
//!
//! A server stops when its handle is dropped and, if the system supports it, when this process
//! dies. Otherwise it is stopped before the next start.

mod account;
mod data_dir;
mod leftover;
mod nats;
mod postgres;
mod process;

pub use data_dir::DataDir;
pub use nats::Nats;
pub use postgres::{Durability, Postgres, PostgresOptions};
