//! Links to the pages of executions.

use assay_runtime::PublicUrl;
use url::Url;

/// The pages of the console.
#[derive(Clone, Debug)]
pub struct Pages(Url);

impl Pages {
    pub fn new(public: &PublicUrl) -> Self {
        Self(public.public_url.clone())
    }

    /// Returns the link to the page of an execution.
    pub(crate) fn execution(&self, id: &str) -> String {
        self.link(&format!("/executions/{id}"))
    }

    /// Returns the link to the page of a shared execution.
    pub(crate) fn shared(&self, token: &str) -> String {
        self.link(&format!("/shared/{token}"))
    }

    /// Returns the link to the badge of a shared execution.
    pub(crate) fn badge(&self, token: &str) -> String {
        self.link(&format!("/api/shared/{token}/badge.svg"))
    }

    fn link(&self, path: &str) -> String {
        let mut link = self.0.clone();
        link.set_path(path);
        link.into()
    }
}
