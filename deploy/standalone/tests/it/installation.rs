//! A running Assay as its users see it.

use std::path::{Path, PathBuf};

use assay_testkit::Api;

/// The address of an Assay, its operator's administrator, and the mails that it sends.
#[derive(Clone)]
pub(crate) struct Installation {
    /// The client of the operator's administrator.
    pub(crate) api: Api,
    url: String,
    mail_dir: PathBuf,
}

impl Installation {
    /// Describes the Assay that this client uses.
    pub(crate) fn new(url: String, api: Api, mail_dir: PathBuf) -> Self {
        Self { api, url, mail_dir }
    }

    /// The URL of the gateway.
    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// A client without a token.
    pub(crate) fn anonymous(&self) -> Api {
        Api::new(self.url())
    }

    /// The directory that mails are written to.
    pub(crate) fn mail_dir(&self) -> &Path {
        &self.mail_dir
    }
}
