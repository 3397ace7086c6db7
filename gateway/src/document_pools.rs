//! The pools that documents of executions pass.

use assay_fair::Shares;

/// Number of documents that are made at once.
const AT_ONCE: usize = 2;

/// Size of a unit of memory, in bytes.
pub(crate) const UNIT: usize = 64 << 10;

/// Number of units for the documents that clients read: 96 MiB.
const UNITS: usize = 1536;

/// The pools of a gateway.
#[derive(Clone)]
pub(crate) struct DocumentPools {
    /// Turns of documents that are made.
    pub(crate) making: Shares,
    /// Memory of documents that clients read, in units.
    pub(crate) memory: Shares,
}

impl Default for DocumentPools {
    fn default() -> Self {
        Self { making: Shares::new(AT_ONCE), memory: Shares::new(UNITS) }
    }
}
