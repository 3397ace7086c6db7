//! Addresses that webhooks may have. Without this policy, a user who may add webhooks could make
//! Assay send requests to hosts that only Assay reaches: the cluster, the machine itself, the
//! metadata service of the cloud.

use std::{
    error::Error,
    net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs},
    time::Duration,
};

use assay_fair::Shares;
use assay_proto::CustomerId;
use assay_runtime::Networks;
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::{task::spawn_blocking, time::timeout};
use url::{Host, Url};
use uuid::Uuid;

/// Maximum number of lookups of host names at the same time. Each occupies a thread until the system gives up, however
/// slow the name servers of a customer are.
pub(crate) const LOOKUPS: usize = 64;

/// Reason why nothing is sent to a host name. It is the same for all names, so that it does not show which of them the
/// name servers of Assay know, and the addresses that they have.
const REFUSED_NAME: &str = "the host name is unknown or refers to addresses which webhooks may not \
                            access; an operator can allow networks in ASSAY_WEBHOOK_NETWORKS";

/// Maximum time that a lookup waits for others, and that it takes.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(4);

tokio::task_local! {
    /// The customer on whose behalf a request is sent.
    static CUSTOMER: CustomerId;
}

/// Sends a request on behalf of a customer, which is charged for the lookup of the host.
pub(crate) async fn on_behalf_of<F: Future>(customer: CustomerId, request: F) -> F::Output {
    CUSTOMER.scope(customer, request).await
}

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
    /// The lookups at the same time.
    pub(crate) lookups: Shares,
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { policy, is_https, lookups } = self;
        let (policy, is_https, lookups) = (policy.clone(), *is_https, lookups.clone());
        // The request begins its connection itself, so it is the one that calls this.
        let customer = CUSTOMER.try_with(|customer| *customer);
        let customer = customer.unwrap_or(CustomerId(Uuid::nil()));
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = look_up(&lookups, customer, host.clone()).await?;
            let is_allowed = |address: &SocketAddr| policy.allows(address.ip(), is_https);
            let (allowed, refused): (Vec<_>, Vec<_>) = found.into_iter().partition(is_allowed);
            if allowed.is_empty() {
                tracing::debug!(%host, ?refused, "webhooks may access no address of a host");
                Err(REFUSED_NAME.into())
            } else {
                Ok(Box::new(allowed.into_iter()) as Addrs)
            }
        })
    }
}

/// Returns the addresses of a host; none if it is unknown. The lookup of the system cannot be interrupted, so it holds
/// its permit until it ends, also if nobody waits for it any more.
async fn look_up(
    lookups: &Shares,
    customer: CustomerId,
    host: String,
) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
    let permit = lookups.acquire_within(customer, LOOKUP_TIMEOUT).await;
    let permit = permit.map_err(|_| "too many lookups of host names take long at the moment")?;
    let lookup = spawn_blocking(move || -> Vec<SocketAddr> {
        let _permit = permit;
        match (host.as_str(), 0_u16).to_socket_addrs() {
            Ok(found) => found.collect(),
            Err(error) => {
                tracing::debug!(%host, %error, "cannot look up the host of a webhook");
                Vec::new()
            }
        }
    });
    let found = timeout(LOOKUP_TIMEOUT, lookup).await;
    Ok(found.map_err(|_| "the lookup of the host name takes too long")??)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn lookups_of_a_customer_that_hang_do_not_delay_those_of_others() {
        let lookups = Shares::new(4);
        let (greedy, other) = (CustomerId::new(), CustomerId::new());
        let mut hanging = Vec::new();
        while let Ok(permit) = lookups.try_acquire(greedy) {
            hanging.push(permit);
        }
        let policy = EgressPolicy::new("127.0.0.0/8,::1/128".parse().unwrap());
        let resolver = Resolver { policy, is_https: true, lookups };
        let resolve = |customer| {
            CUSTOMER.sync_scope(customer, || resolver.resolve("localhost".parse().unwrap()))
        };
        let mut late = resolve(greedy);
        assert!(late.as_mut().now_or_never().is_none());
        assert!(resolve(other).await.is_ok_and(|mut addresses| addresses.next().is_some()));
        drop(hanging);
        assert!(late.await.is_ok_and(|mut addresses| addresses.next().is_some()));
    }

    #[tokio::test]
    async fn the_error_of_a_name_does_not_show_whether_it_is_known() {
        let (policy, lookups) = (EgressPolicy::default(), Shares::new(4));
        let resolver = Resolver { policy, is_https: true, lookups };
        let mut errors = Vec::new();
        // The second name is too long for any name server.
        for name in ["localhost", &"x".repeat(64)] {
            let found = resolver.resolve(name.parse().unwrap()).await;
            errors.push(found.err().unwrap().to_string());
        }
        assert_eq!(errors, [REFUSED_NAME; 2]);
    }

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
