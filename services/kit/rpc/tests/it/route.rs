//! A network route that loses all packets of an open connection.

use std::{
    net::Ipv4Addr,
    process::{Command, Stdio, id},
    time::Duration,
};

use assay_testkit::eventually;
use futures::FutureExt;
use tokio::net::TcpListener;
use tonic::Code;

use crate::world::{Client, Conduct, Program, measured};

/// Maximum time until calls on a lost connection fail.
const DETECTED: Duration = Duration::from_secs(3);

/// An additional address of this machine. Packets to it are lost when this is dropped.
struct Route(Ipv4Addr);

impl Route {
    /// Returns `None` if the user may not change the network.
    fn open() -> Option<Self> {
        let [.., high, low] = id().to_be_bytes();
        let address = Ipv4Addr::new(10, 213, high, low);
        change("add", address).then_some(Self(address))
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        assert!(change("del", self.0), "{} is still an address of this machine", self.0);
    }
}

fn change(action: &str, address: Ipv4Addr) -> bool {
    let mut ip = Command::new("ip");
    ip.args(["address", action, &format!("{address}/32"), "dev", "lo"]).stderr(Stdio::null());
    ip.status().is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_over_a_route_that_loses_all_packets_fail_within_seconds() {
    let Some(route) = Route::open() else {
        eprintln!("skipped: only root may change the network");
        return;
    };
    let listener = TcpListener::bind((route.0, 0)).await.unwrap();
    let program = Program::start_at("a", listener);
    let client = Client::of(program.address);
    assert_eq!(client.read().await.unwrap(), "a");

    program.conduct.send_replace(Conduct::Works);
    let mut call = client.write().boxed();
    eventually("an open call", || {
        assert!((&mut call).now_or_never().is_none(), "the call is pending");
        async { (program.calls.open() == 1).then_some(()) }
    })
    .await;
    drop(route);
    let (failed, taken) = measured("route lost", call).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert!(taken < DETECTED, "{taken:?}");
}
