//! Where a link may lead to. A host that somebody else chose could read the token from the link, so
//! a link leads to hosts that are known to be ours, spelt as they are known.

use assay_proto::Fault;
use url::Url;

use crate::token::rules::subdomain;

/// What is kept at most of a host that somebody asks for; a longer one is none.
const LONGEST_HOST: usize = 512;

/// The hosts that are ours.
#[derive(Clone)]
pub(crate) struct Hosts {
    pub(crate) public: Url,
    /// The domain that the hosts of the customers are in.
    pub(crate) base_domain: Option<String>,
}

impl Hosts {
    /// The origin that a link leads to, for somebody who asked for `host`, and who belongs to the
    /// customers with these subdomains.
    pub(super) fn origin(&self, host: &str, subdomains: &[&str]) -> String {
        self.of_customer(host, subdomains)
            .unwrap_or_else(|| self.public.origin().ascii_serialization())
    }

    /// The origin of the customer that `host` belongs to, if it is one of these.
    fn of_customer(&self, host: &str, subdomains: &[&str]) -> Option<String> {
        let domain = self.base_domain.as_deref()?.trim_matches('.').to_ascii_lowercase();
        let asked = parse(host, self.public.scheme())?;
        let label = subdomain(asked.host_str()?, Some(&domain))?;
        let known = subdomains.contains(&label.as_str());
        // Behind which port of ours the customers' hosts are, is known from the public one.
        if !known || asked.port().is_some_and(|port| Some(port) != self.public.port()) {
            return None;
        }
        let port = self.public.port().map(|port| format!(":{port}")).unwrap_or_default();
        Some(format!("{}://{label}.{domain}{port}", self.public.scheme()))
    }
}

/// Reads an origin, with or without its scheme. What has more to it is none.
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

/// The host, or nothing where that is longer than any host is.
pub(super) fn shortened(host: &str) -> &str {
    if host.len() > LONGEST_HOST || host.contains('\0') { "" } else { host }
}

pub(super) fn invalid_token() -> Fault {
    Fault::Refused {
        code: "invalid_reset_token",
        reason: "the link is not valid any more; have another one sent".to_owned(),
    }
}

pub(super) fn password_needed() -> Fault {
    Fault::Conflict {
        code: "password_needed",
        reason: "the address has no account yet; choose a password with the same link".to_owned(),
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
    fn a_link_leads_to_nobody_elses_host() {
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
        let alone = origin("https://assay.example", None, "https://acme.assay.example");
        assert_eq!(alone, "https://assay.example");
    }

    #[test]
    fn scheme_and_port_are_those_of_the_public_host() {
        for host in ["acme.localhost", "acme.localhost:8080", "https://acme.localhost:8080"] {
            let origin = origin("http://localhost:8080", Some("localhost"), host);
            assert_eq!(origin, "http://acme.localhost:8080", "{host}");
        }
    }

    #[test]
    fn what_is_too_long_for_a_host_is_not_kept() {
        assert_eq!(shortened("acme.assay.example"), "acme.assay.example");
        assert_eq!(shortened(&"x".repeat(513)), "");
        assert_eq!(shortened("\0"), "");
    }
}
