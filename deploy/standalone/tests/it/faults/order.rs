//! Events that come more than once, and in another order than they happened in.

use assay_testkit::Broker;
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    history::{History, warm_up},
    line::Line,
};
use crate::world::World;

/// A message as it lies in an outbox: its subject, and the event.
type Message = (String, Value);

struct Place {
    world: World,
    line: Line,
    _broker: Broker,
}

impl Place {
    async fn new() -> Self {
        let mut broker = Broker::new().await;
        broker.start().await;
        let world = World::start_on(&broker).await;
        let line = Line::of(&world, &broker.url()).await;
        warm_up(&world, &line).await;
        Self { world, line, _broker: broker }
    }

    /// What is left of the history when everybody hears of it in order, and once.
    async fn in_order(self) -> Value {
        let history = History::happen(&self.world.api).await;
        self.line.settle().await;
        let effects = history.effects(&self.world, &self.line).await;
        self.world.stop().await;
        effects
    }

    /// What is left of it when messages come as `delivered` has them.
    async fn delivered(self, delivered: impl FnOnce(Vec<Message>) -> Vec<Message>) -> Value {
        let line = &self.line;
        let sources = [("identity", &line.identity), ("catalog", &line.catalog)];
        let sources = sources.into_iter().chain([("execution", &line.execution)]);
        for (_, db) in sources.clone() {
            hold_back(db).await;
        }
        let history = History::happen(&self.world.api).await;
        let mut messages = Vec::new();
        for (service, db) in sources {
            messages.extend(held_back(service, db).await);
        }
        println!("{} events", messages.len());
        for (subject, event) in delivered(messages) {
            line.send(&subject, event.to_string().into_bytes()).await;
        }
        line.settle().await;
        let effects = history.effects(&self.world, line).await;
        self.world.stop().await;
        effects
    }
}

/// Has the relay believe that it has published what comes from now on.
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

/// What the relay would have published, in order.
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

/// Shuffles by a seed, so that an order that was found to matter can be had again.
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
        let places = u64::try_from(last + 1).unwrap();
        messages.swap(last, usize::try_from(random() % places).unwrap());
    }
    messages
}

#[tokio::test(flavor = "multi_thread")]
async fn backwards_and_then_again_is_as_good_as_in_order() {
    let backwards = |messages: Vec<Message>| {
        let again = messages.clone();
        messages.into_iter().rev().chain(again).collect()
    };
    let effects = Place::new().await.delivered(backwards).await;
    assert_eq!(effects, Place::new().await.in_order().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_times_in_any_order_is_as_good_as_once_in_order() {
    let (seed, _) = Uuid::new_v4().as_u64_pair();
    println!("seed {seed}");
    let thrice = |messages: Vec<Message>| {
        let all = [messages.clone(), messages.clone(), messages].concat();
        shuffled(all, seed)
    };
    let effects = Place::new().await.delivered(thrice).await;
    assert_eq!(effects, Place::new().await.in_order().await, "seed {seed}");
}
