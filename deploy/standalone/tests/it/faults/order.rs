//! Duplicated and reordered events.

use assay_testkit::Broker;
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    history::{History, warm_up},
    pipeline::Pipeline,
};
use crate::world::World;

/// Subject and event of a message in an outbox.
type Message = (String, Value);

struct Scenario {
    world: World,
    pipeline: Pipeline,
    _broker: Broker,
}

impl Scenario {
    async fn new() -> Self {
        let mut broker = Broker::new().await;
        broker.start().await;
        let world = World::start_with_broker(&broker).await;
        let pipeline = Pipeline::of(&world, &broker.url()).await;
        warm_up(&world, &pipeline).await;
        Self { world, pipeline, _broker: broker }
    }

    /// The effects of the history when each event is delivered once, in order.
    async fn effects_in_order(self) -> Value {
        let history = History::run(&self.world.api).await;
        self.pipeline.settle().await;
        let effects = history.effects(&self.world, &self.pipeline).await;
        self.world.stop().await;
        effects
    }

    /// The effects of the history when its messages are delivered as `reorder` returns them.
    async fn effects_of_delivery(
        self,
        reorder: impl FnOnce(Vec<Message>) -> Vec<Message>,
    ) -> Value {
        let pipeline = &self.pipeline;
        let sources = [("identity", &pipeline.identity), ("catalog", &pipeline.catalog)];
        let sources = sources.into_iter().chain([("execution", &pipeline.execution)]);
        for (_, db) in sources.clone() {
            hold_back(db).await;
        }
        let history = History::run(&self.world.api).await;
        let mut messages = Vec::new();
        for (service, db) in sources {
            messages.extend(held_back(service, db).await);
        }
        println!("{} events", messages.len());
        for (subject, event) in reorder(messages) {
            pipeline.send(&subject, event.to_string().into_bytes()).await;
        }
        pipeline.settle().await;
        let effects = history.effects(&self.world, pipeline).await;
        self.world.stop().await;
        effects
    }
}

/// Marks new events as published, so that the relay ignores them.
async fn hold_back(db: &PgPool) {
    for statement in [
        "alter table outbox add held_back boolean not null default false",
        "create function hold_back() returns trigger language plpgsql as
         $$ begin new.published_at := now(); new.held_back := true; return new; end $$",
        "create trigger hold_back before insert on outbox
         for each row execute function hold_back()",
    ] {
        sqlx::query(statement).execute(db).await.unwrap();
    }
}

/// The messages that the relay would have published, in order.
async fn held_back(service: &str, db: &PgPool) -> Vec<Message> {
    let messages = sqlx::query_as(
        "select concat_ws('.', 'assay', $1, customer_id, noun, action),
                json_build_object(
                    'specversion', '1.0', 'id', event_id, 'source', '/assay/' || $1,
                    'type', concat_ws('.', 'io.assay', $1, noun, action, 'v1'),
                    'subject', record, 'tenantid', customer_id,
                    'time', to_char(created_at at time zone 'utc',
                                    'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),
                    'datacontenttype', 'application/json', 'data', data)
         from outbox where held_back order by id",
    );
    messages.bind(service).fetch_all(db).await.unwrap()
}

/// Shuffles by a seed, so that a failing order can be reproduced.
fn shuffled(mut messages: Vec<Message>, seed: u64) -> Vec<Message> {
    let mut state = seed;
    let mut random = || {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    for last in (1..messages.len()).rev() {
        let positions = u64::try_from(last + 1).unwrap();
        messages.swap(last, usize::try_from(random() % positions).unwrap());
    }
    messages
}

#[tokio::test(flavor = "multi_thread")]
async fn events_delivered_in_reverse_and_then_again_have_the_same_effect() {
    let backwards = |messages: Vec<Message>| {
        let again = messages.clone();
        messages.into_iter().rev().chain(again).collect()
    };
    let effects = Scenario::new().await.effects_of_delivery(backwards).await;
    assert_eq!(effects, Scenario::new().await.effects_in_order().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_delivered_three_times_in_random_order_have_the_same_effect() {
    let (seed, _) = Uuid::new_v4().as_u64_pair();
    println!("seed {seed}");
    let thrice = |messages: Vec<Message>| {
        let all = [messages.clone(), messages.clone(), messages].concat();
        shuffled(all, seed)
    };
    let effects = Scenario::new().await.effects_of_delivery(thrice).await;
    assert_eq!(effects, Scenario::new().await.effects_in_order().await, "seed {seed}");
}
