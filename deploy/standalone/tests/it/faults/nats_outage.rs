//! Outages of NATS, and the loss of its data.

use std::time::Duration;

use assay_events::{Since, replay};
use assay_testkit::{Broker, eventually};
use futures::future::join_all;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{
    load::Load,
    pipeline::Pipeline,
    watcher::{Watcher, notifications},
};
use crate::world::World;

/// Duration of the outage in seconds: long enough for several attempts of a relay at its longest
/// back-off.
const AWAY_IN_S: f64 = 3.0;

/// Interval in which each client writes during the outage.
const PACE: Duration = Duration::from_millis(200);

/// A running Assay with clients of two customers.
struct Scenario {
    world: World,
    pipeline: Pipeline,
    /// Clients of two customers, the first of which is the operator's.
    loads: [Load; 2],
    /// Number of notifications of each customer before.
    before: [usize; 2],
}

impl Scenario {
    async fn start(broker: &mut Broker) -> Self {
        broker.start().await;
        let world = World::start_with_broker(broker).await;
        let pipeline = Pipeline::of(&world, &broker.url()).await;
        let mail = json!({"MailWhenExecutionEnds": true});
        world.api.put("/api/users/current/settings", mail).await.ok();
        let other = world.act_for_new_customer("acme").await;
        let loads = [Load::new(&world.api).await, Load::new(&other).await];
        pipeline.settle().await;
        let before = [&loads[0], &loads[1]].map(|load| notifications(&load.api));
        let before = join_all(before).await.iter().map(Vec::len).collect::<Vec<_>>();
        let before = before.try_into().unwrap();
        Self { world, pipeline, loads, before }
    }

    /// Waits until all clients have written this number of rounds more.
    async fn progress(&self, rounds: usize) {
        let from = [&self.loads[0], &self.loads[1]].map(Load::rounds);
        eventually("clients to continue writing", || async {
            let mut all = self.loads.iter().zip(from);
            all.all(|(load, from)| load.rounds() >= from + rounds).then_some(())
        })
        .await;
    }

    /// Asserts that every change took effect exactly once in every service.
    async fn assert_all_applied_once(&self, expected: &[Vec<[String; 5]>]) {
        for ((load, expected), before) in self.loads.iter().zip(expected).zip(self.before) {
            load.assert_notified(before, expected).await;
            let shown = load.test_set().await;
            assert_eq!(shown["LastExecutionStatistic"]["TestCasesFailed"], 1, "{shown}");
        }
        let mut differences = Vec::new();
        assay::verify(self.world.databases(), |one| differences.push(one.to_string()))
            .await
            .unwrap();
        assert!(differences.is_empty(), "the databases differ: {differences:#?}");

        let rounds: usize = self.loads.iter().map(Load::rounds).sum();
        let seen = "select count(*) from audit_entry where action = 'SecretsSeen'";
        let seen: i64 = sqlx::query_scalar(seen).fetch_one(&self.pipeline.identity).await.unwrap();
        assert_eq!(usize::try_from(seen).unwrap(), rounds);
        // The administrator gets mails only from the operator's customer; a visitor has no
        // settings.
        let expected = self.loads[0].rounds() + 1;
        eventually("mails", || async { (self.world.mail_count() >= expected).then_some(()) }).await;
        let queued = "select count(*) from mail";
        eventually("an empty queue of mails", || async {
            let queued: i64 =
                sqlx::query_scalar(queued).fetch_one(&self.pipeline.identity).await.unwrap();
            (queued == 0).then_some(())
        })
        .await;
        assert_eq!(self.world.mail_count(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_nats_fails_no_calls_and_loses_no_events() {
    let mut broker = Broker::new().await;
    let scenario = Scenario::start(&mut broker).await;
    let watcher = Watcher::start(&broker.url(), "watcher").await;
    let stop = CancellationToken::new();
    let fault = async {
        scenario.progress(3).await;
        broker.stop().await;
        eventually("a backlog in the outboxes", || async {
            let [_, catalog, execution, notification] = scenario.pipeline.backlogs().await;
            let is_deep = catalog >= 20 && execution >= 60 && notification >= 20;
            (is_deep && scenario.pipeline.oldest_age().await > AWAY_IN_S).then_some(())
        })
        .await;
        scenario.progress(3).await;
        broker.start().await;
        eventually("the outboxes to drain while clients write", || async {
            (scenario.pipeline.oldest_age().await < 0.5).then_some(())
        })
        .await;
        scenario.progress(3).await;
        stop.cancel();
    };
    let work = join_all(scenario.loads.iter().map(|load| load.run_until(&stop, PACE)));
    let (expected, ()) = tokio::join!(work, fault);

    scenario.pipeline.settle().await;
    scenario.assert_all_applied_once(&expected).await;
    for load in &scenario.loads {
        let (seen, there) = watcher.caught_up(&load.api).await;
        assert_eq!(seen, there, "every record, in order");
    }
    scenario.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_after_a_loss_of_nats_data_restores_events_without_duplicate_effects() {
    let mut broker = Broker::new().await;
    let scenario = Scenario::start(&mut broker).await;
    let write = |rounds| join_all(scenario.loads.iter().map(move |load| load.run(rounds)));
    // The broker is lost before all of these events are consumed.
    let mut expected = write(8).await;
    broker.kill().await;
    broker.wipe();
    let without = write(8).await;
    broker.start().await;
    let afterwards = write(2).await;
    for later in [without, afterwards] {
        expected.iter_mut().zip(later).for_each(|(expected, later)| expected.extend(later));
    }
    let since = Since::Ago(Duration::from_hours(1));
    let mut replayed = 0;
    for db in scenario.pipeline.databases() {
        replayed += replay(db, since).await.unwrap().events;
    }
    println!("{replayed} events were replayed");

    scenario.pipeline.settle().await;
    scenario.assert_all_applied_once(&expected).await;
    // A new subscriber starts with all events that the broker has.
    let watcher = Watcher::start(&broker.url(), "newcomer").await;
    for load in &scenario.loads {
        let (mut seen, mut there) = watcher.caught_up(&load.api).await;
        seen.sort();
        there.sort();
        assert_eq!(seen, there, "every record");
    }
    scenario.world.stop().await;
}
