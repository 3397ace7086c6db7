//! Two replicas of every program under attack, and ledgers outside Assay of what was acknowledged.
//!
//! A short form runs with all tests. `make chaos` runs for minutes, and prints its figures.

mod clocks;
mod faults;
mod ledger;
mod load;
mod receivers;

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{
    faults::Faults,
    ledger::Ledger,
    load::Load,
    receivers::{Mailbox, Receiver},
};
use crate::{
    fleet::{Clock, Fleet},
    numbers::Numbers,
};

/// The clocks of the replicas.
const CLOCKS: [Clock; 2] = [Some("-3m"), Some("+6h")];

/// Time in which faults happen by default, in seconds.
const SECONDS: &str = "15";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_repeated_while_replicas_are_killed_frozen_and_cut_off() {
    let (seconds, seed) = (number("ASSAY_CHAOS_SECONDS", SECONDS), number("ASSAY_CHAOS_SEED", ""));
    println!("ASSAY_CHAOS_SEED={seed}");
    let mailbox = Mailbox::open().await;
    let receivers = [Receiver::open().await, Receiver::open().await];
    let smtp = mailbox.url();
    let settings = [
        ("ASSAY_SMTP_URL", smtp.as_str()),
        ("ASSAY_MAIL_FROM", "assay@assay.test"),
        ("ASSAY_MAIL_TIMEOUT_SECONDS", "5"),
    ];
    let mut fleet = Fleet::start(&CLOCKS, &settings).await;
    let load = Load::prepare(&fleet, &receivers).await;

    let ends = Instant::now() + Duration::from_secs(seconds);
    let stop = CancellationToken::new();
    let longest_freeze = if seconds < 60 { 4 } else { 12 };
    let mut faults = Faults::new(Numbers::of(seed), longest_freeze);
    let attack = async {
        faults.run_until(ends, &mut fleet, &mailbox, &receivers).await;
        stop.cancel();
    };
    tokio::join!(load.run_until(&stop), attack);

    let ledger = Ledger { fleet: &fleet, load: &load, mailbox: &mailbox, receivers: &receivers };
    ledger.settle(Duration::from_secs(60 + seconds / 2)).await;
    let wrong = ledger.wrong().await;
    println!("{faults}\n{ledger}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    fleet.stop().await.stop().await;
}

/// Returns the number in an environment variable; by default `default`, or a new one.
#[expect(clippy::disallowed_methods, reason = "a test has no configuration to be parsed")]
fn number(name: &str, default: &str) -> u64 {
    let given = std::env::var(name).unwrap_or_else(|_| default.to_owned());
    given.parse().unwrap_or_else(|_| u64::from(std::process::id()))
}
