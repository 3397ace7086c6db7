//! The faults, one after another in a random order, so that each kind happens equally often.

use std::{collections::BTreeMap, fmt, time::Duration};

use tokio::time::{Instant, interval_at};

use super::receivers::{Mailbox, Mood, Receiver};
use crate::{
    fleet::{Fleet, Replica, SERVICES},
    numbers::Numbers,
};

/// How often each fault happens before all begin again.
const DECK: &[(Fault, usize)] = &[
    (Fault::Kill, 3),
    (Fault::Freeze, 2),
    (Fault::Terminate, 1),
    (Fault::KillBoth, 1),
    (Fault::KillNats, 1),
    (Fault::WipeNats, 1),
    (Fault::CrashPostgres, 1),
    (Fault::Mails, 1),
    (Fault::Webhooks, 1),
];

/// Times without a fault between two faults, and durations of outages, in ms.
const CALM: (usize, usize) = (200, 700);
const AWAY: (usize, usize) = (100, 1_000);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Kill,
    Freeze,
    Terminate,
    KillBoth,
    KillNats,
    WipeNats,
    CrashPostgres,
    Mails,
    Webhooks,
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::Kill => "`kill -9` of a replica",
            Self::Freeze => "replica frozen (SIGSTOP)",
            Self::Terminate => "replica restarted (SIGTERM)",
            Self::KillBoth => "`kill -9` of both replicas of a service",
            Self::KillNats => "`kill -9` of NATS",
            Self::WipeNats => "`kill -9` of NATS, its store wiped",
            Self::CrashPostgres => "PostgreSQL stopped immediately",
            Self::Mails => "mail server hangs, refuses or loses answers",
            Self::Webhooks => "webhook receiver hangs, refuses or loses answers",
        }
    }
}

/// Causes faults and counts them.
pub(super) struct Faults {
    numbers: Numbers,
    /// Shortest and longest duration of a freeze, in ms.
    frozen: (usize, usize),
    deck: Vec<Fault>,
    counts: BTreeMap<Fault, usize>,
}

impl Faults {
    /// Creates faults of which freezes last up to this time, in seconds.
    pub(super) fn new(numbers: Numbers, longest_freeze: usize) -> Self {
        let frozen = (1_000, 1_000 * longest_freeze);
        Self { numbers, frozen, deck: Vec::new(), counts: BTreeMap::new() }
    }

    /// Causes faults until a time. At the end, everything runs, and all receivers accept messages.
    pub(super) async fn run_until(
        &mut self,
        ends: Instant,
        fleet: &mut Fleet,
        mailbox: &Mailbox,
        receivers: &[Receiver; 2],
    ) {
        // The second one hangs half of the time, which must not delay the first one.
        let mut hangs = true;
        receivers[1].set(Mood::Hangs);
        while Instant::now() < ends {
            self.pause(CALM).await;
            let fault = self.next();
            *self.counts.entry(fault).or_default() += 1;
            match fault {
                Fault::KillNats | Fault::WipeNats => {
                    fleet.nats.kill().await;
                    if fault == Fault::WipeNats {
                        fleet.nats.wipe();
                    }
                    self.pause(AWAY).await;
                    fleet.nats.start().await;
                }
                Fault::CrashPostgres => fleet.postgres.crash().await,
                Fault::Mails => mailbox.set(self.mood()),
                Fault::Webhooks => {
                    receivers[0].set(self.mood());
                    hangs = !hangs;
                    receivers[1].set(if hangs { Mood::Hangs } else { Mood::Accepts });
                }
                Fault::KillBoth => {
                    let service = SERVICES[self.numbers.below(SERVICES.len())];
                    let is_hit = |replica: &&mut Replica| replica.program == service;
                    for replica in fleet.replicas.iter_mut().filter(is_hit) {
                        replica.kill().await;
                        replica.start();
                    }
                }
                Fault::Kill | Fault::Freeze | Fault::Terminate => {
                    let number = self.numbers.below(fleet.replicas.len());
                    self.hit(fault, &mut fleet.replicas[number]).await;
                }
            }
        }
        mailbox.set(Mood::Accepts);
        for receiver in receivers {
            receiver.set(Mood::Accepts);
        }
    }

    /// Lets a replica fail and return.
    async fn hit(&mut self, fault: Fault, replica: &mut Replica) {
        match fault {
            Fault::Freeze => {
                replica.freeze();
                self.pause(self.frozen).await;
                return replica.thaw();
            }
            Fault::Terminate => replica.terminate().await,
            _ => replica.kill().await,
        }
        self.pause(AWAY).await;
        replica.start();
    }

    /// Returns the next fault of the deck.
    fn next(&mut self) -> Fault {
        if self.deck.is_empty() {
            let faults = DECK.iter().flat_map(|(fault, count)| vec![*fault; *count]);
            self.deck = faults.collect();
        }
        let number = self.numbers.below(self.deck.len());
        self.deck.swap_remove(number)
    }

    fn mood(&mut self) -> Mood {
        let moods = [Mood::Hangs, Mood::Refuses, Mood::Loses, Mood::Accepts];
        moods[self.numbers.below(moods.len())]
    }

    async fn pause(&mut self, (least, most): (usize, usize)) {
        let millis = least + self.numbers.below(most - least);
        let pause = Duration::from_millis(u64::try_from(millis).unwrap());
        interval_at(Instant::now() + pause, pause).tick().await;
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, count) in &self.counts {
            writeln!(f, "| {} | {count} |", fault.name())?;
        }
        Ok(())
    }
}
