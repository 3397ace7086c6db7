//! Settings of the store.

use std::path::Path;

use secrecy::SecretString;
use url::Url;

/// Settings of the store of files and artifacts.
#[derive(clap::Args, Clone, Debug)]
pub struct FileStoreConfig {
    /// Store of files and artifacts: a folder, or a bucket as `s3://bucket/folder`
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
    /// Maximum size of a file or an artifact, in MiB
    #[arg(long, env = "ASSAY_LARGEST_FILE_MIB", default_value_t = LARGEST_FILE_MIB)]
    pub largest_file_mib: u32,
}

/// Default of the maximum size of a file, in MiB.
const LARGEST_FILE_MIB: u32 = 5 << 10;

impl FileStoreConfig {
    /// Returns the settings of a store in a folder.
    pub fn folder(folder: &Path) -> Self {
        Self {
            artifacts: Some(folder.to_string_lossy().into_owned()),
            s3_endpoint: None,
            s3_region: String::new(),
            s3_access_key_id: None,
            s3_secret_access_key: None,
            largest_file_mib: LARGEST_FILE_MIB,
        }
    }
}
