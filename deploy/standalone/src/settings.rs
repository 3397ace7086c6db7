//! Settings of all programs.

use anyhow::Result;
use assay_catalog::FileConfig;
use assay_database::PoolConfig;
use assay_events::EventConfig;
use assay_execution::{FileStoreConfig, QueueMetrics, QuotaConfig, TimeLimits};
use assay_gateway::EdgeConfig;
use assay_identity::{AuditConfig, FirstStartConfig, LoginConfig, MailConfig};
use assay_notification::{RetentionConfig, WebhookConfig};
use assay_runtime::PublicUrl;
use url::Url;

/// Settings of all programs.
#[derive(clap::Args, Clone, Debug)]
pub struct Settings {
    #[command(flatten)]
    pub edge: EdgeConfig,
    /// By default, the address of the gateway.
    #[command(flatten)]
    pub public: Option<PublicUrl>,
    #[command(flatten)]
    pub first_start: FirstStartConfig,
    #[command(flatten)]
    pub login: LoginConfig,
    #[command(flatten)]
    pub audit: AuditConfig,
    #[command(flatten)]
    pub mail: MailConfig,
    #[command(flatten)]
    pub file_store: FileStoreConfig,
    #[command(flatten)]
    pub files: FileConfig,
    #[command(flatten)]
    pub leases: TimeLimits,
    #[command(flatten)]
    pub quota: QuotaConfig,
    #[command(flatten)]
    pub queue_metrics: QueueMetrics,
    #[command(flatten)]
    pub retention: RetentionConfig,
    #[command(flatten)]
    pub webhooks: WebhookConfig,
    #[command(flatten)]
    pub pool: PoolConfig,
    #[command(flatten)]
    pub events: EventConfig,
}

impl Settings {
    /// Returns the URL of the gateway for users.
    pub(crate) fn public_url(&self) -> Result<PublicUrl> {
        if let Some(public) = &self.public {
            return Ok(public.clone());
        }
        Ok(PublicUrl { public_url: Url::parse(&format!("http://{}", self.edge.http_listen))? })
    }
}
