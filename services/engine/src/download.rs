//! Downloads of the files of a lease: continued where they were cut off, and checked while they are written.

use std::{fs::File, io};

use anyhow::anyhow;
use assay_client::{Attempts, ClientError, visible};
use assay_digest::hex;
use assay_proto::execution::LeasedFile;
use aws_lc_rs::digest::{Context, SHA256};
use reqwest::StatusCode;
use tokio::io::{AsyncSeekExt, AsyncWriteExt};

use crate::api::Api;

/// Number of attempts that bring no byte, after which a download is given up. They take about 40 seconds, so a
/// restart of Assay does not fail tests.
const ATTEMPTS: u32 = 10;

/// Reason for which a test does not get a file.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Assay does not have the file, or has another one. The test fails.
    Unavailable(String),
    /// This machine cannot store the file. The engine fails.
    Engine(anyhow::Error),
}

impl Failure {
    pub(crate) fn unavailable(file: &LeasedFile, problem: &str) -> Self {
        let (name, id) = (visible(&file.name), visible(&file.id));
        Self::Unavailable(format!("The file {name} ({id}) cannot be used: {problem}"))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Engine(anyhow!(error).context("cannot store a file of the test"))
    }
}

/// Computes a SHA-256.
pub(crate) struct Hash(Context);

impl Default for Hash {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Hash {
    /// Returns the SHA-256 in hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        hex(self.0.finish().as_ref())
    }
}

impl io::Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The part of a file that has arrived.
struct Arrived {
    file: tokio::fs::File,
    hash: Hash,
    size: u64,
}

/// Writes a file of a lease into an empty file. Fails unless it has the size and the SHA-256 of the lease.
pub(crate) async fn receive(
    api: &Api,
    lease: &str,
    file: &LeasedFile,
    to: File,
) -> Result<(), Failure> {
    let mut arrived = Arrived { file: to.into(), hash: Hash::default(), size: 0 };
    let mut attempts = Attempts::new(ATTEMPTS);
    loop {
        let before = arrived.size;
        let Some(error) = arrived.continue_with(api, lease, file).await? else { break };
        let has_progressed = arrived.size > before;
        let is_whole = i64::try_from(arrived.size).ok() == Some(file.size);
        if is_whole && has_progressed && !error.is_permanent() {
            // The response has broken off after the last byte, and no range follows.
            break;
        }
        let waited = attempts.wait_after(error, has_progressed, |error| {
            tracing::warn!(lease.id = lease, file.id = file.id, %error, "a download broke off; will continue it");
        });
        waited.await.map_err(|error| Failure::unavailable(file, &error.to_string()))?;
    }
    arrived.file.flush().await?;
    let (size, sha256) = (arrived.size, arrived.hash.finish());
    if i64::try_from(size).ok() != Some(file.size) {
        let problem = format!("it has {size} bytes instead of {}", file.size);
        return Err(Failure::unavailable(file, &problem));
    }
    if sha256 != file.sha256 {
        let problem = format!("its SHA-256 is {sha256} instead of {}", file.sha256);
        return Err(Failure::unavailable(file, &problem));
    }
    Ok(())
}

impl Arrived {
    /// Requests and writes the rest of the file. Returns the failure of the request.
    async fn continue_with(
        &mut self,
        api: &Api,
        lease: &str,
        file: &LeasedFile,
    ) -> Result<Option<ClientError>, Failure> {
        let mut answer = match api.download(lease, file, self.size).await {
            Ok(answer) => answer,
            Err(error) => return Ok(Some(error)),
        };
        if answer.status() != StatusCode::PARTIAL_CONTENT && self.size > 0 {
            self.file.set_len(0).await?;
            self.file.rewind().await?;
            (self.hash, self.size) = (Hash::default(), 0);
        }
        let limit = u64::try_from(file.size).unwrap_or_default().saturating_sub(self.size);
        loop {
            match answer.chunk(limit).await {
                Ok(Some(chunk)) => {
                    self.file.write_all(&chunk).await?;
                    io::Write::write_all(&mut self.hash, &chunk)?;
                    self.size += chunk.len() as u64;
                }
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(error)),
            }
        }
    }
}
