//! Several replicas behind one name.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use assay_testkit::{Wire, eventually};
use futures::future::join_all;
use tokio::sync::watch;

use crate::world::{Client, Program};

/// Concurrent callers that call without a pause.
struct Load<'a> {
    client: &'a Client,
    enough: AtomicBool,
    done: AtomicUsize,
}

impl<'a> Load<'a> {
    fn of(client: &'a Client) -> Self {
        Self { client, enough: AtomicBool::new(false), done: AtomicUsize::new(0) }
    }

    /// Calls until [`Load::end`]. Panics if a call fails.
    async fn run(&self, writes: bool) {
        join_all((0..16).map(|_| async {
            while !self.enough.load(Ordering::SeqCst) {
                self.client.read().await.expect("no read fails");
                if writes {
                    self.client.write().await.expect("no write fails");
                }
                self.done.fetch_add(1, Ordering::SeqCst);
            }
        }))
        .await;
    }

    /// Waits until so many more calls have succeeded.
    async fn further(&self, calls: usize) {
        let from = self.done.load(Ordering::SeqCst);
        eventually("more calls", || async {
            (self.done.load(Ordering::SeqCst) >= from + calls).then_some(())
        })
        .await;
    }

    fn end(&self) {
        self.enough.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_balanced_and_no_read_fails_when_a_replica_is_killed() {
    let (a, b) = (Program::start("a").await, Program::start("b").await);
    let wire = Wire::to(b.address).await.unwrap();
    let addresses = watch::Sender::new(vec![a.address, wire.address()]);
    let client = Client::of_all(&addresses);
    eventually("both", || async { (client.read().await.ok()? == "b").then_some(()) }).await;

    let load = Load::of(&client);
    let story = async {
        load.further(1000).await;
        let (of_a, of_b) = (a.calls.reads(), b.calls.reads());
        println!("{of_a} and {of_b} calls");
        assert!(of_a.min(of_b) * 2 > of_a.max(of_b), "{of_a} and {of_b} calls");
        for _ in 0..5 {
            wire.cut();
            load.further(500).await;
            wire.restore();
            let before = b.calls.reads();
            eventually("its return", || async { (b.calls.reads() > before).then_some(()) }).await;
        }
        load.end();
    };
    tokio::join!(load.run(false), story);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_when_a_replica_is_stopped() {
    let (a, b) = (Program::start("a").await, Program::start("b").await);
    let addresses = watch::Sender::new(vec![a.address, b.address]);
    let client = Client::of_all(&addresses);
    eventually("both", || async { (client.read().await.ok()? == "b").then_some(()) }).await;

    let load = Load::of(&client);
    let story = async {
        load.further(500).await;
        b.runtime.stop(Duration::from_secs(5)).await.unwrap();
        let last = b.calls.reads();
        load.further(500).await;
        assert_eq!(b.calls.reads(), last);
        load.end();
    };
    tokio::join!(load.run(true), story);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_follow_the_addresses_of_the_name() {
    let (a, b) = (Program::start("a").await, Program::start("b").await);
    let addresses = watch::Sender::new(vec![a.address]);
    let client = Client::of_all(&addresses);
    assert_eq!(client.read().await.unwrap(), "a");

    addresses.send_replace(vec![a.address, b.address]);
    eventually("the new one", || async { (client.read().await.ok()? == "b").then_some(()) }).await;
    addresses.send_replace(vec![b.address]);
    eventually("only the new one", || async {
        let mut who = BTreeSet::new();
        for _ in 0..10 {
            who.insert(client.read().await.unwrap());
        }
        (who.len() == 1).then_some(())
    })
    .await;
    assert_eq!(client.read().await.unwrap(), "b");
}
