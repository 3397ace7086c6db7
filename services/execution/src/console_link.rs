//! Links to the pages of executions.

use assay_runtime::PublicUrl;
use url::Url;

/// Links to the console, if it is served.
#[derive(Clone, Debug)]
pub struct ConsoleLinks {
    public: Url,
    /// Whether the console is served.
    is_served: bool,
}

impl ConsoleLinks {
    pub fn new(public: &PublicUrl, is_served: bool) -> Self {
        Self { public: public.public_url.clone(), is_served }
    }

    /// Returns the link to the page of an execution, if there is one.
    pub(crate) fn execution(&self, id: &str) -> Option<String> {
        self.is_served.then(|| self.link(&format!("/executions/{id}")))
    }

    /// Returns the link to the page of a shared execution, if there is one.
    pub(crate) fn shared(&self, token: &str) -> Option<String> {
        self.is_served.then(|| self.link(&format!("/shared/{token}")))
    }

    /// Returns the link to the badge of a shared execution, which the interface serves.
    pub(crate) fn badge(&self, token: &str) -> String {
        self.link(&format!("/api/shared/{token}/badge.svg"))
    }

    fn link(&self, path: &str) -> String {
        let mut link = self.public.clone();
        link.set_path(path);
        link.into()
    }
}
