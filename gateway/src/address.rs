//! The address of the client, resolved through trusted proxies.

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
};

use assay_runtime::Networks;
use axum::extract::{ConnectInfo, FromRequestParts, Request};
use http::{HeaderMap, request::Parts};

/// The address of the client; none without a connection, as in tests.
#[derive(Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) Option<IpAddr>);

impl ClientAddress {
    pub(crate) fn of(parts: &Parts) -> Option<IpAddr> {
        parts.extensions.get().and_then(|Self(address)| *address)
    }
}

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Self::of(parts)))
    }
}

/// The proxies whose headers name the clients behind them.
pub(crate) struct Proxies(Networks);

impl Proxies {
    pub(crate) fn new(trusted: &Networks) -> Self {
        Self(trusted.clone())
    }

    /// Returns the address of the client that has sent a request.
    pub(crate) fn client(&self, request: &Request) -> ClientAddress {
        let peer = request.extensions().get().map(|ConnectInfo::<SocketAddr>(peer)| peer.ip());
        ClientAddress(peer.map(|peer| client(&self.0, peer, request.headers())))
    }
}

/// Follows the trusted proxies back to the first other address. Earlier addresses in the headers
/// may be forged.
fn client(trusted: &Networks, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let lines = headers.get_all("x-forwarded-for").iter().rev();
    let mut hops = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
    let mut client = peer.to_canonical();
    while trusted.contain(client)
        && let Some(Ok(previous)) = hops.next().map(|hop| hop.trim().parse::<IpAddr>())
    {
        client = previous.to_canonical();
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(proxies: &str, peer: &str, lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        client(&proxies.parse().unwrap(), peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn headers_of_untrusted_peers_are_ignored() {
        assert_eq!(found("", "192.0.2.1", &["10.0.0.1"]), "192.0.2.1");
        assert_eq!(found("10.0.0.0/8", "192.0.2.1", &["10.0.0.1"]), "192.0.2.1");
        assert_eq!(found("10.0.0.0/8", "::ffff:192.0.2.1", &[]), "192.0.2.1");
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_trusted_proxy() {
        let proxies = "10.0.0.0/8, 2001:db8::1";
        for (lines, expected) in [
            (&["198.51.100.7"][..], "198.51.100.7"),
            (&["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
            (&["203.0.113.9, 198.51.100.7, 10.9.9.9"], "198.51.100.7"),
            (&["203.0.113.9", "198.51.100.7 , 2001:db8::1"], "198.51.100.7"),
            (&["10.0.0.2"], "10.0.0.2"),
            (&[], "10.0.0.1"),
            (&["198.51.100.7, unknown"], "10.0.0.1"),
            (&["2001:db8::7"], "2001:db8::7"),
        ] {
            assert_eq!(found(proxies, "10.0.0.1", lines), expected, "{lines:?}");
        }
    }
}
