//! The parameters that select tests by their suites, labels and links.

use assay_proto::ClassificationFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::query::unless_empty;

/// Place of the tests to return; any by default. Empty parameters count as absent.
#[derive(Default, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub(super) struct Classification {
    /// Return only tests with this tag, or with this label as `name:value`.
    #[param(example = "smoke")]
    #[serde(deserialize_with = "unless_empty")]
    tag: Option<String>,
    /// Return only tests with a link to this URL or id, or to a URL whose last part it is.
    #[param(example = "SHOP-7")]
    #[serde(deserialize_with = "unless_empty")]
    link: Option<String>,
    /// Return only tests in a suite with this name, or in suites below it.
    #[param(example = "Checkout")]
    #[serde(deserialize_with = "unless_empty")]
    suite: Option<String>,
}

impl Classification {
    /// Returns the filter; none without parameters.
    pub(super) fn filter(self) -> Option<ClassificationFilter> {
        let Self { tag, link, suite } = self;
        let filter = ClassificationFilter { tag, link, suite };
        (filter != ClassificationFilter::default()).then_some(filter)
    }
}
