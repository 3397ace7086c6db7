//! Limits of open connections.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::process::{Resource, getrlimit};

use super::timeouts::Timeouts;
use crate::Networks;

/// One address may have this fraction of all connections: a quarter.
const PARTS: usize = 4;

/// File descriptors reserved for connections to servers, files and listeners.
const RESERVED_FILES: u64 = 256;

/// Limits the connections of a server, in total and per address. Only the total applies to trusted
/// proxies, which have many clients behind them.
#[derive(Clone)]
pub struct Connections(Arc<Inner>);

struct Inner {
    most: usize,
    timeouts: Timeouts,
    proxies: Networks,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    count: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// The right to keep a connection open, until it is dropped.
pub(super) struct Permit {
    connections: Connections,
    address: IpAddr,
}

impl Connections {
    /// Allows so many connections, but no more than the limit of open files.
    pub fn new(most: usize, proxies: Networks) -> Self {
        Self::with_timeouts(most, proxies, Timeouts::default())
    }

    /// Does the same as [`Connections::new`], with other timeouts of clients.
    pub fn with_timeouts(most: usize, proxies: Networks, timeouts: Timeouts) -> Self {
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let for_clients =
            usize::try_from(files.saturating_sub(RESERVED_FILES)).unwrap_or(usize::MAX);
        for limit in ["address", "all"] {
            count_refused(limit, 0);
        }
        let most = most.min(for_clients);
        Self(Arc::new(Inner { most, timeouts, proxies, open: Mutex::default() }))
    }

    pub(super) fn admit(&self, peer: IpAddr) -> Option<Permit> {
        let address = network(peer.to_canonical());
        let mut open = self.open();
        if open.count >= self.0.most {
            count_refused("all", 1);
            return None;
        }
        let of_address = open.by_address.get(&address).copied().unwrap_or_default();
        if of_address >= (self.0.most / PARTS).max(1) && !self.0.proxies.contain(peer) {
            count_refused("address", 1);
            return None;
        }
        open.count += 1;
        open.by_address.insert(address, of_address + 1);
        Some(Permit { connections: self.clone(), address })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    pub(super) fn timeouts(&self) -> Timeouts {
        self.connections.0.timeouts
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.connections.open();
        open.count -= 1;
        let rest = open.by_address.get(&self.address).map_or(0, |count| count - 1);
        if rest == 0 {
            open.by_address.remove(&self.address);
        } else {
            open.by_address.insert(self.address, rest);
        }
    }
}

/// Counts refused connections. The counter is exported from 0, so that alerts see the first
/// increase.
fn count_refused(limit: &'static str, connections: u64) {
    metrics::counter!("assay_connections_refused_total", "limit" => limit).increment(connections);
}

/// Returns the address by which clients are counted: for IPv6 the /64 network, which belongs to one
/// client.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(connections: &Connections, peer: &str, tries: usize) -> Vec<Permit> {
        let peer = peer.parse().unwrap();
        (0..tries).filter_map(|_| connections.admit(peer)).collect()
    }

    #[test]
    fn an_address_gets_a_quarter_of_the_connections_and_a_proxy_all() {
        let connections = Connections::new(40, "10.0.0.1".parse().unwrap());
        let one = admitted(&connections, "192.0.2.1", 20);
        assert_eq!(one.len(), 10);
        assert_eq!(admitted(&connections, "::ffff:192.0.2.1", 1).len(), 0);
        let network = admitted(&connections, "2001:db8::1", 6);
        assert_eq!(network.len() + admitted(&connections, "2001:db8::2", 6).len(), 10);

        let behind = admitted(&connections, "10.0.0.1", 40);
        assert_eq!(one.len() + network.len() + behind.len(), 40);
        assert_eq!(admitted(&connections, "192.0.2.2", 1).len(), 0);
        drop(behind);
        drop(one);
        assert_eq!(admitted(&connections, "192.0.2.1", 20).len(), 10);
        drop(network);
        assert!(connections.open().by_address.is_empty());
    }

    #[test]
    fn an_address_gets_at_least_one_connection() {
        assert_eq!(admitted(&Connections::new(2, Networks::default()), "192.0.2.1", 2).len(), 1);
    }
}
