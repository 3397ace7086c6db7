//! Encryption keys of stored secrets in the data directory.

use std::{
    fs,
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, Result};
use assay_auth::{SealConfig, new_seal_key};
use secrecy::ExposeSecret;

/// Name of the file in the data directory.
const KEYS_FILE: &str = "encryption-keys";

/// Returns the keys in the data directory; generates one if there are none.
pub(crate) fn load_or_create(data: &Path) -> Result<SealConfig> {
    if let Some(stored) = load(data)? {
        return Ok(stored);
    }
    let encryption_keys = new_seal_key("1")?;
    write_secret(&data.join(KEYS_FILE), encryption_keys.expose_secret())?;
    Ok(SealConfig { encryption_keys })
}

/// Returns the keys in the data directory, if any.
pub(crate) fn load(data: &Path) -> Result<Option<SealConfig>> {
    let file = data.join(KEYS_FILE);
    match fs::read_to_string(&file) {
        Ok(keys) => Ok(Some(SealConfig { encryption_keys: keys.trim().into() })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Creates a file that only this user can read. It has its name once it is complete, so that no crash leaves an empty
/// one.
fn write_secret(file: &Path, secret: &str) -> Result<()> {
    let draft = file.with_extension("new");
    let mut options = fs::File::options();
    let mut written = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&draft)
        .with_context(|| format!("cannot write {}", draft.display()))?;
    writeln!(written, "{secret}")?;
    written.sync_all()?;
    fs::rename(&draft, file).with_context(|| format!("cannot write {}", file.display()))
}
