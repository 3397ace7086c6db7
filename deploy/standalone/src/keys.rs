//! Encryption keys of stored secrets: given by a setting, or kept in the data directory.

use std::{
    fs,
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, Result};
use assay_auth::{SealConfig, new_seal_key};
use secrecy::{ExposeSecret, SecretString};

/// Name of the file in the data directory.
const KEYS_FILE: &str = "encryption-keys";

/// Returns the encryption keys; generates one if there are none.
pub(crate) fn seal_config(data: &Path, given: Option<SecretString>) -> Result<SealConfig> {
    if let Some(stored) = stored_seal_config(data, given)? {
        return Ok(stored);
    }
    let encryption_keys = new_seal_key("1")?;
    write_secret(&data.join(KEYS_FILE), encryption_keys.expose_secret())?;
    Ok(SealConfig { encryption_keys })
}

/// Returns the given encryption keys, else those in the data directory, if any.
pub(crate) fn stored_seal_config(
    data: &Path,
    given: Option<SecretString>,
) -> Result<Option<SealConfig>> {
    if let Some(encryption_keys) = given {
        return Ok(Some(SealConfig { encryption_keys }));
    }
    let file = data.join(KEYS_FILE);
    match fs::read_to_string(&file) {
        Ok(keys) => Ok(Some(SealConfig { encryption_keys: keys.trim().into() })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

/// Creates a file that only this user can read.
fn write_secret(file: &Path, secret: &str) -> Result<()> {
    let mut options = fs::File::options();
    let mut written = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .with_context(|| format!("cannot write {}", file.display()))?;
    writeln!(written, "{secret}")?;
    written.sync_all()?;
    Ok(())
}
