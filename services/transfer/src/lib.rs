//! Moves projects: exports them in an open format, and imports exports and files of other tools.

mod access;
mod export;
mod folder;
mod import;
mod interface;
mod live;
mod progress;
mod source;

pub use self::{export::Export, import::Import};
