//! NATS stopped, and NATS lost with all that it kept.

use std::time::Duration;

use assay_events::{Since, replay};
use assay_testkit::{Broker, eventually};
use futures::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    line::Line,
    load::Load,
    watcher::{Watcher, notifications},
};
use crate::world::World;

/// How long NATS is away: long enough for a relay to try in vain several times, at its longest pause.
const AWAY_IN_S: f64 = 3.0;

/// Two customers at work.
struct Story {
    world: World,
    line: Line,
    /// Of two customers, the first of which is the operator's.
    loads: [Load; 2],
    /// How many notifications each had before.
    before: [usize; 2],
}

impl Story {
    async fn begin(broker: &mut Broker) -> Self {
        broker.start().await;
        let world = World::start_on(broker).await;
        let line = Line::of(&world, &broker.url()).await;
        let mail = json!({"MailWhenExecutionEnds": true});
        world.api.put("/api/users/current/settings", mail).await.ok();
        let other = world.manage_new("acme").await;
        let loads = [Load::new(&world.api).await, Load::new(&other).await];
        line.settle().await;
        let before = [&loads[0], &loads[1]].map(|load| notifications(&load.api));
        let before = join_all(before).await.iter().map(Vec::len).collect::<Vec<_>>();
        let before = before.try_into().unwrap();
        Self { world, line, loads, before }
    }

    /// Waits until all loads have come so much further.
    async fn further(&self, rounds: usize) {
        let from = [&self.loads[0], &self.loads[1]].map(Load::rounds);
        eventually("clients that go on writing", || async {
            let mut all = self.loads.iter().zip(from);
            all.all(|(load, from)| load.rounds() >= from + rounds).then_some(())
        })
        .await;
    }

    /// Fails unless everybody knows of everything, and of nothing twice.
    async fn nothing_is_missing(&self, said: &[Vec<[String; 5]>]) {
        for ((load, said), before) in self.loads.iter().zip(said).zip(self.before) {
            load.is_told(before, said).await;
            let shown = load.shown().await;
            assert_eq!(shown["LastExecutionStatistic"]["TestCasesFailed"], 1, "{shown}");
        }
        let [catalog, execution] = self.world.catalog_and_execution();
        let mut told = Vec::new();
        assay::verify(execution, catalog, |one| told.push(one.to_string())).await.unwrap();
        assert!(told.is_empty(), "the catalog shows something else: {told:#?}");

        let rounds: usize = self.loads.iter().map(Load::rounds).sum();
        let seen = "select count(*) from audit_entry where action = 'SecretsSeen'";
        let seen: i64 = sqlx::query_scalar(seen).fetch_one(&self.line.identity).await.unwrap();
        assert_eq!(usize::try_from(seen).unwrap(), rounds);
        // The administrator gets mails; as a visitor of the other customer they have no settings.
        let expected = self.loads[0].rounds() + 1;
        eventually("mails", || async { (self.world.mails() >= expected).then_some(()) }).await;
        let queued = "select count(*) from mail";
        eventually("an empty queue of mails", || async {
            let queued: i64 =
                sqlx::query_scalar(queued).fetch_one(&self.line.identity).await.unwrap();
            (queued == 0).then_some(())
        })
        .await;
        assert_eq!(self.world.mails(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_nats_is_stopped_no_call_fails_and_afterwards_nothing_is_missing() {
    let mut broker = Broker::new().await;
    let story = Story::begin(&mut broker).await;
    let watcher = Watcher::start(&broker.url(), "watcher").await;
    let enough = CancellationToken::new();
    let fault = async {
        story.further(3).await;
        broker.stop().await;
        eventually("deep outboxes", || async {
            let [_, catalog, execution, notification] = story.line.depths().await;
            let deep = catalog >= 20 && execution >= 60 && notification >= 20;
            (deep && story.line.longest_wait().await > AWAY_IN_S).then_some(())
        })
        .await;
        story.further(3).await;
        broker.start().await;
        eventually("outboxes that drain while clients write", || async {
            (story.line.longest_wait().await < 0.5).then_some(())
        })
        .await;
        story.further(3).await;
        enough.cancel();
    };
    let work = join_all(story.loads.iter().map(|load| load.run_until(&enough)));
    let (said, ()) = tokio::join!(work, fault);

    story.line.settle().await;
    story.nothing_is_missing(&said).await;
    for load in &story.loads {
        let (seen, there) = watcher.caught_up(&load.api).await;
        assert_eq!(seen, there, "every record, in order");
    }
    story.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nats_has_lost_is_told_again_and_has_no_second_effect() {
    let mut broker = Broker::new().await;
    let story = Story::begin(&mut broker).await;
    let write = |rounds| join_all(story.loads.iter().map(move |load| load.run(rounds)));
    // Nobody waits until all of this has arrived.
    let mut said = write(8).await;
    broker.kill().await;
    broker.wipe();
    let without = write(8).await;
    broker.start().await;
    let afterwards = write(2).await;
    for later in [without, afterwards] {
        said.iter_mut().zip(later).for_each(|(said, later)| said.extend(later));
    }
    let since = Since::Ago(Duration::from_hours(1));
    let mut replayed = 0;
    for db in story.line.databases() {
        replayed += replay(db, since).await.unwrap().events;
    }
    println!("{replayed} events were replayed");

    story.line.settle().await;
    story.nothing_is_missing(&said).await;
    // Somebody new, who starts with what the broker has.
    let watcher = Watcher::start(&broker.url(), "newcomer").await;
    for load in &story.loads {
        let (mut seen, mut there) = watcher.caught_up(&load.api).await;
        seen.sort();
        there.sort();
        assert_eq!(seen, there, "every record");
    }
    story.world.stop().await;
}
