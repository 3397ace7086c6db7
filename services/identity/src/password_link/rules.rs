//! Hosts of links. The host of a link gets its token, so links use configured hosts only, spelled
//! as configured.

use assay_proto::Fault;
use url::Url;

use crate::token::rules::subdomain;

/// Maximum length of a requested host, in bytes; longer ones are ignored.
const LONGEST_HOST: usize = 512;

/// The configured hosts.
#[derive(Clone)]
pub(crate) struct Hosts {
    pub(crate) public: Url,
    /// The parent domain of the hosts of customers.
    pub(crate) base_domain: Option<String>,
}

impl Hosts {
    /// Returns the origin of a link for a request that names `host`, from a member of the customers
    /// with these subdomains.
    pub(super) fn origin(&self, host: &str, subdomains: &[&str]) -> String {
        self.of_customer(host, subdomains)
            .unwrap_or_else(|| self.public.origin().ascii_serialization())
    }

    /// Returns the origin of the customer with the host, if it is one of these.
    fn of_customer(&self, host: &str, subdomains: &[&str]) -> Option<String> {
        let domain = self.base_domain.as_deref()?.trim_matches('.').to_ascii_lowercase();
        let requested = parse(host, self.public.scheme())?;
        let label = subdomain(requested.host_str()?, Some(&domain))?;
        let known = subdomains.contains(&label.as_str());
        // Hosts of customers use the port of the public URL.
        if !known || requested.port().is_some_and(|port| Some(port) != self.public.port()) {
            return None;
        }
        let port = self.public.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("{}://{label}.{domain}{port}", self.public.scheme()))
    }
}

/// Parses an origin, with or without its scheme. Returns none if it has other parts.
fn parse(host: &str, scheme: &str) -> Option<Url> {
    let text = if host.contains("://") { host.to_owned() } else { format!("{scheme}://{host}") };
    let url = Url::parse(&text).ok()?;
    let is_origin = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none();
    is_origin.then_some(url)
}

/// Returns the host, or an empty text if it is too long or not valid.
pub(super) fn host_or_empty(host: &str) -> &str {
    if host.len() > LONGEST_HOST || host.contains('\0') { "" } else { host }
}

pub(super) fn invalid_token() -> Fault {
    Fault::Refused {
        code: "invalid_reset_token",
        reason: "the link has expired or has been used; request a new one".to_owned(),
    }
}

pub(super) fn account_exists() -> Fault {
    Fault::Conflict {
        code: "account_exists",
        reason: "the address has an account already; accept the invitation with its password, or request a new \
                 password first"
            .to_owned(),
    }
}

pub(super) fn password_needed() -> Fault {
    Fault::Conflict {
        code: "password_needed",
        reason: "the address has no account yet; set a password with the same link".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(public: &str, base_domain: Option<&str>, host: &str) -> String {
        let base_domain = base_domain.map(ToOwned::to_owned);
        let hosts = Hosts { public: Url::parse(public).unwrap(), base_domain };
        hosts.origin(host, &["acme", "umbrella"])
    }

    #[test]
    fn a_link_leads_to_a_customer_of_the_account() {
        for host in [
            "https://acme.assay.example",
            "acme.assay.example",
            "HTTPS://ACME.Assay.Example/",
            "http://acme.assay.example",
        ] {
            let origin = origin("https://www.assay.example", Some("assay.example"), host);
            assert_eq!(origin, "https://acme.assay.example", "{host}");
        }
    }

    #[test]
    fn a_link_never_leads_to_another_host() {
        for host in [
            "",
            "https://evil.example",
            "https://www.assay.example",
            "https://stranger.assay.example",
            "https://assay.example",
            "https://acme.assay.example.evil.example",
            "https://evil.example/acme.assay.example",
            "https://evil.example?acme.assay.example",
            "https://evil.example#acme.assay.example",
            "https://evil.example\\@acme.assay.example",
            "https://acme.assay.example\\@evil.example",
            "https://acme.assay.example@evil.example",
            "https://evil.example@acme.assay.example",
            "https://acme.assay.example:8443",
            "https://acme.assay.example:80",
            "https://acme.assay.example/path",
            "https://a.acme.assay.example",
            "ftp://acme.assay.example",
            "javascript:alert(1)",
            "javascript://acme.assay.example/%0aalert(1)",
            "//evil.example",
            "acme.assay.example, evil.example",
            "acmeassay.example",
        ] {
            let origin = origin("https://www.assay.example", Some("assay.example"), host);
            assert_eq!(origin, "https://www.assay.example", "{host}");
        }
        let without_domain = origin("https://assay.example", None, "https://acme.assay.example");
        assert_eq!(without_domain, "https://assay.example");
    }

    #[test]
    fn scheme_and_port_are_those_of_the_public_host() {
        for host in ["acme.localhost", "acme.localhost:8080", "https://acme.localhost:8080"] {
            let origin = origin("http://localhost:8080", Some("localhost"), host);
            assert_eq!(origin, "http://acme.localhost:8080", "{host}");
        }
    }

    #[test]
    fn an_overlong_host_is_ignored() {
        assert_eq!(host_or_empty("acme.assay.example"), "acme.assay.example");
        assert_eq!(host_or_empty(&"x".repeat(513)), "");
        assert_eq!(host_or_empty("\0"), "");
    }
}
