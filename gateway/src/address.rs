//! Where a request came from.

use std::{
    convert::Infallible,
    net::{IpAddr, SocketAddr},
    str::FromStr,
    sync::Arc,
};

use axum::{
    extract::{ConnectInfo, FromRequestParts, Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, request::Parts};
use ipnet::IpNet;

/// The proxies that are believed what they say in `X-Forwarded-For`.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Arc<[IpNet]>);

/// Addresses or networks, separated by commas.
impl FromStr for TrustedProxies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let network = |name: &str| {
            let address = name.parse::<IpAddr>().map(IpNet::from);
            let network = address.or_else(|_| name.parse());
            network.map_err(|_| format!("{name} is no address and no network such as 10.0.0.0/8"))
        };
        names.map(network).collect::<Result<_, _>>().map(Self)
    }
}

impl TrustedProxies {
    fn trust(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Follows the proxies back to the first address that is none of them. What was claimed before
    /// that, anybody can have written.
    fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let mut hops = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
        let mut client = peer.to_canonical();
        while self.trust(client)
            && let Some(Ok(previous)) = hops.next().map(|hop| hop.trim().parse::<IpAddr>())
        {
            client = previous.to_canonical();
        }
        client
    }
}

/// The address of the client; none where there is no connection, as in tests.
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

/// Finds out where a request came from.
pub(crate) async fn locate(
    State(proxies): State<TrustedProxies>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get().map(|ConnectInfo::<SocketAddr>(peer)| peer.ip());
    let client = peer.map(|peer| proxies.client(peer, request.headers()));
    request.extensions_mut().insert(ClientAddress(client));
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(proxies: &str, peer: &str, lines: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append("x-forwarded-for", line.parse().unwrap());
        }
        let proxies: TrustedProxies = proxies.parse().unwrap();
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn nobody_is_believed_who_is_not_trusted() {
        assert_eq!(client("", "192.0.2.1", &["10.0.0.1"]), "192.0.2.1");
        assert_eq!(client("10.0.0.0/8", "192.0.2.1", &["10.0.0.1"]), "192.0.2.1");
        assert_eq!(client("10.0.0.0/8", "::ffff:192.0.2.1", &[]), "192.0.2.1");
    }

    #[test]
    fn proxies_are_followed_back_to_the_first_stranger() {
        let proxies = "10.0.0.0/8, 2001:db8::1";
        for (lines, found) in [
            (&["198.51.100.7"][..], "198.51.100.7"),
            (&["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
            (&["203.0.113.9, 198.51.100.7, 10.9.9.9"], "198.51.100.7"),
            (&["203.0.113.9", "198.51.100.7 , 2001:db8::1"], "198.51.100.7"),
            (&["10.0.0.2"], "10.0.0.2"),
            (&[], "10.0.0.1"),
            (&["198.51.100.7, unknown"], "10.0.0.1"),
            (&["2001:db8::7"], "2001:db8::7"),
        ] {
            assert_eq!(client(proxies, "10.0.0.1", lines), found, "{lines:?}");
        }
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for wrong in ["proxy.example", "10.0.0.0/33", "10.0.0.0/8;10.1.0.0/16"] {
            assert!(wrong.parse::<TrustedProxies>().is_err(), "{wrong}");
        }
    }
}
