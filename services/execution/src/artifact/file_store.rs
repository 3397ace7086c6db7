//! The store of the files: a folder, or a bucket of an S3-compatible service. Paths consist of ids
//! only.

use std::{
    fs,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use assay_proto::{ArtifactId, CustomerId, ExecutionId, Fault};
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use object_store::{
    Error, ObjectStore, ObjectStoreExt, WriteMultipart, aws::AmazonS3Builder,
    local::LocalFileSystem, path::Path, prefix::PrefixStore,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::timeout;
use tonic::Status;
use url::Url;

/// The chunks of an uploaded file, as they arrive.
pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// Maximum size of a file, in bytes. The gateway has the same limit.
const LARGEST: usize = 32 << 20;

/// Size of the parts in which files are sent to the store, in bytes.
const PART: usize = 5 << 20;

/// Maximum number of parts that are sent at the same time.
const PARTS: usize = 2;

/// Time limit for each call of the store, and for each chunk of a file. A store may hang at any point.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The metric of calls.
const CALLS: &str = "assay_artifact_store_call_duration_seconds";

/// Describes the metric of calls.
pub(super) fn describe_metrics() {
    metrics::describe_histogram!(
        CALLS,
        metrics::Unit::Seconds,
        "Time that the store of artifacts has taken for a call."
    );
}

/// Settings of the store of artifacts.
#[derive(clap::Args, Clone, Debug)]
pub struct FileStoreConfig {
    /// Store of artifacts: a folder, or a bucket as `s3://bucket/folder`
    #[arg(long, env = "ASSAY_ARTIFACTS", default_value = "data/artifacts")]
    pub artifacts: Option<String>,
    /// URL of an S3-compatible service, such as <https://minio.example.org>. AWS by default
    #[arg(long, env = "ASSAY_S3_ENDPOINT")]
    pub s3_endpoint: Option<Url>,
    /// Region of the bucket
    #[arg(long, env = "ASSAY_S3_REGION", default_value = "us-east-1")]
    pub s3_region: String,
    /// Access key. By default, the credentials that AWS grants to the machine are used
    #[arg(long, env = "ASSAY_S3_ACCESS_KEY_ID", requires = "s3_secret_access_key")]
    pub s3_access_key_id: Option<String>,
    /// Secret of the access key
    #[arg(long, env = "ASSAY_S3_SECRET_ACCESS_KEY", hide_env_values = true)]
    pub s3_secret_access_key: Option<SecretString>,
}

impl FileStoreConfig {
    /// Returns the settings of a store in a folder.
    pub fn folder(folder: &std::path::Path) -> Self {
        Self {
            artifacts: Some(folder.to_string_lossy().into_owned()),
            s3_endpoint: None,
            s3_region: String::new(),
            s3_access_key_id: None,
            s3_secret_access_key: None,
        }
    }
}

/// The store of the files.
#[derive(Clone)]
pub(super) struct FileStore(Arc<dyn ObjectStore>);

impl FileStore {
    pub(super) fn open(config: &FileStoreConfig) -> anyhow::Result<Self> {
        let artifacts = config.artifacts.as_deref().context("set ASSAY_ARTIFACTS")?;
        let Some(bucket) = artifacts.strip_prefix("s3://") else {
            return Self::folder(artifacts);
        };
        let (bucket, folder) = bucket.split_once('/').unwrap_or((bucket, ""));
        let mut builder =
            AmazonS3Builder::from_env().with_bucket_name(bucket).with_region(&config.s3_region);
        if let Some(endpoint) = &config.s3_endpoint {
            builder = builder
                .with_endpoint(endpoint.as_str().trim_end_matches('/'))
                .with_allow_http(endpoint.scheme() == "http")
                .with_virtual_hosted_style_request(false);
        }
        if let (Some(id), Some(secret)) = (&config.s3_access_key_id, &config.s3_secret_access_key) {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret.expose_secret());
        }
        let store = builder.build().context("invalid ASSAY_ARTIFACTS or ASSAY_S3_…")?;
        Ok(Self(Arc::new(PrefixStore::new(store, folder))))
    }

    fn folder(folder: &str) -> anyhow::Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {folder}"))?;
        let store = LocalFileSystem::new_with_prefix(folder)?.with_automatic_cleanup(true);
        Ok(Self(Arc::new(store)))
    }

    /// Stores a file and returns its size. An incomplete or too large file is not stored.
    pub(super) async fn put(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        id: ArtifactId,
        mut file: Pieces,
    ) -> Result<i64, Status> {
        let path = path(customer, execution, id);
        let upload = available(measured("begin", self.0.put_multipart(&path)).await)?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PART);
        match fill(&mut upload, &mut file).await {
            Ok(size) => {
                available(measured("finish", upload.finish()).await)?;
                Ok(size)
            }
            Err(status) => {
                if let Err(error) = measured("abort", upload.abort()).await {
                    tracing::warn!(%error, "cannot abort an upload; its parts remain in the store");
                }
                Err(status)
            }
        }
    }

    /// Returns the size of a file and its chunks.
    pub(super) async fn get(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        id: ArtifactId,
    ) -> Result<(i64, impl Stream<Item = Result<Bytes, Fault>> + Send + use<>), Fault> {
        let path = path(customer, execution, id);
        let found = match measured("read", self.0.get(&path)).await {
            Err(Error::NotFound { .. }) => return Err(Fault::NotFound("artifact")),
            found => available(found)?,
        };
        let size = i64::try_from(found.meta.size).unwrap_or(i64::MAX);
        let chunks = stream::unfold(found.into_stream(), |mut chunks| async {
            let chunk = within(chunks.try_next()).await.transpose()?;
            Some((available(chunk), chunks))
        });
        Ok((size, chunks))
    }

    /// Removes a file if it exists.
    pub(super) async fn delete(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        id: ArtifactId,
    ) -> Result<(), Fault> {
        match measured("remove", self.0.delete(&path(customer, execution, id))).await {
            Ok(()) | Err(Error::NotFound { .. }) => Ok(()),
            failed => available(failed),
        }
    }

    /// Removes all files of an execution.
    pub(super) async fn remove(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
    ) -> Result<(), Fault> {
        let files = self.0.list(Some(&folder(customer, execution)));
        let files = files.map_ok(|file| file.location).boxed();
        let mut removed = self.0.delete_stream(files);
        loop {
            match measured("remove", removed.try_next()).await {
                Ok(None) => return Ok(()),
                Ok(Some(_)) | Err(Error::NotFound { .. }) => {}
                failed => available(failed.map(drop))?,
            }
        }
    }
}

/// Sends the chunks of a file to the store, as fast as it accepts them.
async fn fill(upload: &mut WriteMultipart, file: &mut Pieces) -> Result<i64, Status> {
    let mut size = 0;
    while let Some(piece) = file.next().await {
        let piece = piece?;
        size += piece.len();
        if size > LARGEST {
            let reason = format!("the file is larger than {} MiB", LARGEST >> 20);
            return Err(Fault::Refused { code: "too_large", reason }.into());
        }
        available(measured("write", upload.wait_for_capacity(PARTS)).await)?;
        upload.put(piece);
    }
    Ok(i64::try_from(size).unwrap_or(i64::MAX))
}

fn folder(customer: CustomerId, execution: ExecutionId) -> Path {
    Path::from_iter([customer.to_string(), execution.to_string()])
}

fn path(customer: CustomerId, execution: ExecutionId, id: ArtifactId) -> Path {
    folder(customer, execution).join(id.to_string())
}

/// Does a part of a call within the deadline.
async fn within<T>(part: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |late| Error::Generic { store: "artifacts", source: Box::new(late) };
    timeout(TIMEOUT, part).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// Calls the store within the deadline, and measures the call.
async fn measured<T>(
    call: &'static str,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let begun = Instant::now();
    let answer = within(answer).await;
    let result = match &answer {
        Ok(_) | Err(Error::NotFound { .. }) => "done",
        Err(_) => "failed",
    };
    metrics::histogram!(CALLS, "call" => call, "result" => result).record(begun.elapsed());
    answer
}

fn available<T>(answer: Result<T, Error>) -> Result<T, Fault> {
    answer.map_err(|error| {
        tracing::warn!(%error, "the store of artifacts failed");
        Fault::Unavailable("the store of artifacts")
    })
}
