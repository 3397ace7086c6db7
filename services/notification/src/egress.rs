//! Addresses that webhooks may have. Without this policy, a user who may add webhooks could make
//! Assay send requests to hosts that only Assay reaches: the cluster, the machine itself, the
//! metadata service of the cloud.

use std::net::{IpAddr, Ipv6Addr};

use assay_runtime::Networks;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use url::{Host, Url};

/// Networks that are not part of the Internet or not unicast, from the registries of special-purpose
/// addresses:
/// <https://www.iana.org/assignments/iana-ipv4-special-registry>,
/// <https://www.iana.org/assignments/iana-ipv6-special-registry>.
const SPECIAL: [&str; 21] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
    "2001::/23",
    "2001:db8::/32",
    "2002::/16",
    "3fff::/20",
];

/// Network of the global unicast addresses of IPv6.
const UNICAST: &str = "2000::/3";

/// Network in which a NAT64 gateway embeds IPv4 addresses (RFC 6052).
const TRANSLATED: &str = "64:ff9b::/96";

/// Decides which hosts webhooks may be sent to: those on the Internet by https, and those in the
/// allowed networks by https or http.
#[derive(Clone, Debug, Default)]
pub(crate) struct EgressPolicy(Networks);

impl EgressPolicy {
    pub(crate) fn new(allowed: Networks) -> Self {
        Self(allowed)
    }

    /// Returns the rule that a URL violates, if any. A host name is not resolved; the [`Resolver`]
    /// checks its addresses when a request is sent.
    pub(crate) fn problem(&self, url: &Url) -> Option<String> {
        let is_https = match url.scheme() {
            "https" => true,
            "http" if !self.0.is_empty() => false,
            _ => return Some("must begin with https://".to_owned()),
        };
        let address = match url.host()? {
            Host::Ipv4(address) => IpAddr::V4(address),
            Host::Ipv6(address) => IpAddr::V6(address),
            Host::Domain(_) => return None,
        };
        (!self.allows(address, is_https)).then(|| refusal(address))
    }

    fn allows(&self, address: IpAddr, is_https: bool) -> bool {
        self.0.contain(address) || is_https && is_public(address)
    }
}

fn refusal(address: IpAddr) -> String {
    format!(
        "refers to {address}, which webhooks may not access; an operator can allow its network in \
         ASSAY_WEBHOOK_NETWORKS"
    )
}

fn is_public(address: IpAddr) -> bool {
    let is_in =
        |network: &str| network.parse::<IpNet>().is_ok_and(|network| network.contains(&address));
    match address.to_canonical() {
        IpAddr::V6(translated) if is_in(TRANSLATED) => is_public(IpAddr::V4(embedded(translated))),
        IpAddr::V6(_) => is_in(UNICAST) && !SPECIAL.iter().any(|network| is_in(network)),
        canonical if canonical != address => is_public(canonical),
        IpAddr::V4(_) => !SPECIAL.iter().any(|network| is_in(network)),
    }
}

/// Returns the IPv4 address in the last four bytes.
fn embedded(address: Ipv6Addr) -> std::net::Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    [a, b, c, d].into()
}

/// Resolves host names to the allowed addresses only. The client connects to exactly the addresses
/// that were checked, so a second answer of the DNS cannot bypass the policy.
pub(crate) struct Resolver {
    pub(crate) policy: EgressPolicy,
    pub(crate) is_https: bool,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { policy, is_https } = self;
        let (policy, is_https) = (policy.clone(), *is_https);
        Box::pin(async move {
            let mut refused = None;
            let mut allowed = Vec::new();
            for address in lookup_host((name.as_str(), 0)).await? {
                if policy.allows(address.ip(), is_https) {
                    allowed.push(address);
                } else {
                    refused = Some(address.ip());
                }
            }
            match refused {
                Some(refused) if allowed.is_empty() => {
                    Err(format!("the host {}", refusal(refused)).into())
                }
                _ => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for public in ["1.1.1.1", "172.15.0.1", "192.0.1.1", "2606:4700::1111", "64:ff9b::101:101"]
        {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for other in [
            "0.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.1.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!is_public(other.parse().unwrap()), "{other}");
        }
        for network in SPECIAL.iter().chain([&UNICAST, &TRANSLATED]) {
            assert!(network.parse::<IpNet>().is_ok(), "{network}");
        }
    }
}
