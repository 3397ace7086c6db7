//! A NATS cluster of three servers, one of which may fail.

use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
};

use uuid::Uuid;

use crate::{Broker, test_dir};

/// A cluster of nats-servers, each behind a proxy with a constant address.
///
/// Its methods panic if they fail.
pub struct Cluster([Broker; Cluster::SIZE]);

impl Cluster {
    pub const SIZE: usize = 3;

    pub async fn start() -> Self {
        let dir = test_dir().expect("a directory").join(format!("cluster-{}", Uuid::now_v7()));
        fs::create_dir(&dir).expect("a directory of its own");
        let ports = free_ports();
        let routes = ports.map(|port| format!("\"nats://127.0.0.1:{port}\"")).join(", ");
        let mut members = Vec::new();
        for port in ports {
            let config = dir.join(format!("{port}.conf"));
            // Advertised addresses of other members would lead clients past the proxies.
            let cluster = format!(
                "name: assay, no_advertise: true, listen: \"127.0.0.1:{port}\", routes: [{routes}]"
            );
            fs::write(&config, format!("server_name: \"n{port}\"\ncluster {{ {cluster} }}\n"))
                .expect("a configuration");
            let mut member = Broker::configured(config).await;
            member.start().await;
            members.push(member);
        }
        Self(members.try_into().unwrap_or_else(|_| unreachable!("one for each port")))
    }

    /// Returns the URLs of the servers, separated by commas.
    pub fn urls(&self) -> String {
        self.0.each_ref().map(Broker::url).join(",")
    }

    /// Returns one of the servers.
    pub fn member(&mut self, number: usize) -> &mut Broker {
        &mut self.0[number]
    }
}

/// Returns free ports. Servers must know those of the others before they start.
fn free_ports() -> [u16; Cluster::SIZE] {
    let listeners = [(); Cluster::SIZE]
        .map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}
