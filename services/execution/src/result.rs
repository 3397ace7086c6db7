//! Results that test tools report, to a running execution or as a completed one.

mod adding;
pub(crate) mod adoption;
pub(crate) mod attachments;
mod chunks;
mod classification;
mod export;
pub(crate) mod file;
mod folder;
pub(crate) mod json;
pub(crate) mod link;
pub(crate) mod resolve;
mod results;
pub(crate) mod rules;
mod service;
mod upload;

use sqlx::PgPool;

pub(crate) use self::adding::{Added, report};
use crate::{
    artifact::Artifacts, catalog::Catalog, console_link::ConsoleLinks, limits::IngestLimits,
};

/// The gRPC service of results.
#[derive(Clone)]
pub(crate) struct ResultService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
    pub(crate) limits: IngestLimits,
    pub(crate) artifacts: Artifacts,
    pub(crate) console: ConsoleLinks,
}
