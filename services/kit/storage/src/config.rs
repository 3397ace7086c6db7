//! Settings of the store.

use std::{path::Path, time::Duration};

use object_store::{
    ClientConfigKey, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
};
use secrecy::{ExposeSecret, SecretString};
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

/// Time limit for a whole file that is read from a bucket, which may take as long as the client that downloads it.
const LONGEST_READ: Duration = Duration::from_hours(24);

/// Maximum number of times that a file is requested again from where it broke off, such as after a pause of the client.
const MOST_RETRIES: usize = 1000;

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

    /// Returns the client of a bucket.
    pub(crate) fn bucket(&self, name: &str) -> AmazonS3Builder {
        let mut builder =
            AmazonS3Builder::from_env().with_bucket_name(name).with_region(&self.s3_region);
        if let Some(endpoint) = &self.s3_endpoint {
            builder = builder
                .with_endpoint(endpoint.as_str().trim_end_matches('/'))
                .with_allow_http(endpoint.scheme() == "http")
                .with_virtual_hosted_style_request(false);
        }
        if let (Some(id), Some(secret)) = (&self.s3_access_key_id, &self.s3_secret_access_key) {
            builder = builder.with_access_key_id(id).with_secret_access_key(secret.expose_secret());
        }
        builder
    }

    /// Returns the client of a bucket that reads files. A file whose parts do not arrive is requested again before the
    /// deadline of a chunk is over.
    pub(crate) fn bucket_to_read(&self, name: &str) -> AmazonS3Builder {
        let retry = RetryConfig {
            max_retries: MOST_RETRIES,
            retry_timeout: LONGEST_READ,
            ..RetryConfig::default()
        };
        let builder = self.bucket(name).with_retry(retry).with_config(PAUSE, "20s");
        builder.with_config(TIMEOUT, format!("{}s", LONGEST_READ.as_secs()))
    }
}

/// The time limit for a whole response, of 30 seconds by default, and for each part of it.
const TIMEOUT: AmazonS3ConfigKey = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
const PAUSE: AmazonS3ConfigKey = AmazonS3ConfigKey::Client(ClientConfigKey::ReadTimeout);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_download_from_a_bucket_may_take_as_long_as_its_client() {
        let bucket = FileStoreConfig::folder(Path::new("")).bucket_to_read("bucket");
        assert_eq!(bucket.get_config_value(&TIMEOUT).as_deref(), Some("86400s"));
    }
}
