//! The beginning of a file, by which its format is recognized.

use std::{fs::File, io::Read, path::Path};

use anyhow::{Context, Result};

/// Number of bytes that a format is recognized by.
const HEAD: u64 = 16 << 10;

/// Returns the beginning of a file, by which its format is recognized.
pub(super) fn head(file: &Path) -> Result<String> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut head = Vec::new();
    opened.take(HEAD).read_to_end(&mut head)?;
    let head = String::from_utf8_lossy(&head);
    Ok(head.trim_start_matches('\u{feff}').trim_start().to_owned())
}
