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
        let mut link = self.0.clone();
        link.set_path(&format!("/executions/{id}"));
        link.into()
    }
}
