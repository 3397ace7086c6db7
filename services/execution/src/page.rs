//! Links to the pages of executions.

use assay_runtime::PublicUrl;
use url::Url;

/// The pages of the console.
#[derive(Clone, Debug)]
pub struct Pages {
    public: Url,
    /// Whether the console is served.
    are_served: bool,
}

impl Pages {
    pub fn new(public: &PublicUrl, are_served: bool) -> Self {
        Self { public: public.public_url.clone(), are_served }
    }

    /// Returns the link to the page of an execution, if there is one.
    pub(crate) fn execution(&self, id: &str) -> Option<String> {
        self.are_served.then(|| self.link(&format!("/executions/{id}")))
    }

    /// Returns the link to the page of a shared execution, if there is one.
    pub(crate) fn shared(&self, token: &str) -> Option<String> {
        self.are_served.then(|| self.link(&format!("/shared/{token}")))
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
