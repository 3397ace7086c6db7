//! Customers of an Assay, mostly of the shared one.

use assay_testkit::Api;
use uuid::Uuid;

use crate::{installation::Installation, people::Member};

const CURRENT: &str = "/api/management/customers/current";

/// A new customer.
pub(crate) struct Customer {
    /// The client of its administrator, who has all permissions.
    pub(crate) api: Api,
    pub(crate) assay: Installation,
    domain: String,
}

impl Customer {
    /// Creates a customer of the shared Assay.
    pub(crate) async fn new() -> Self {
        Self::of(Installation::shared().await).await
    }

    pub(crate) async fn of(assay: Installation) -> Self {
        let subdomain = unique("customer");
        let visitor = assay.act_for_new_customer(&subdomain).await;
        let domain = format!("{subdomain}.example.org");
        let groups = visitor.get(CURRENT).await.ok()["UserGroups"].clone();
        let mut groups = groups.as_array().unwrap().iter();
        let administrators = groups.find(|group| group["Name"] == "Administrators").unwrap();
        let admin = assay.add_member(&visitor, &format!("ada@{domain}"), administrators).await;
        Self { api: admin.api, assay, domain }
    }

    /// Creates a member with a new group, and logs in.
    pub(crate) async fn create_member(&self, name: &str, permissions: &str) -> Member {
        let email = format!("{name}@{}", self.domain);
        self.assay.create_member(&self.api, &email, permissions).await
    }

    /// The URL of the gateway.
    pub(crate) fn url(&self) -> String {
        self.assay.url()
    }

    /// A client without a token.
    pub(crate) fn anonymous(&self) -> Api {
        self.assay.anonymous()
    }
}

/// Returns a subdomain that no other story uses.
pub(crate) fn unique(name: &str) -> String {
    format!("{name}-{}", Uuid::now_v7().simple())
}
