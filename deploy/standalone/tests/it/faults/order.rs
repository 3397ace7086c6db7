//! Duplicated and reordered events.

use assay_testkit::{Api, Broker};
use serde_json::Value;
use sqlx::PgPool;
use uuid::Uuid;

use super::{
    history::{History, warm_up},
    pipeline::Pipeline,
};
use crate::{customer::Customer, installation::Installation, numbers::Numbers, world::World};

/// Subject and event of a message in an outbox.
type Message = (String, Value);

/// An Assay, with the history of a different customer for each order of delivery.
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
        Self { world, pipeline, _broker: broker }
    }

    /// The client of the administrator of a new customer.
    async fn customer(&self) -> Api {
        let api = Customer::of(Installation::clone(&self.world)).await.api;
        warm_up(&api, &self.pipeline).await;
        api
    }

    /// The services whose events others consume, and their databases.
    fn sources(&self) -> [(&'static str, &PgPool); 3] {
        let Pipeline { identity, catalog, execution, .. } = &self.pipeline;
        [("identity", identity), ("catalog", catalog), ("execution", execution)]
    }

    /// The effects of the history when each event is delivered once, in order.
    async fn effects_in_order(&self, api: &Api) -> Value {
        let history = History::run(api).await;
        self.pipeline.settle().await;
        history.effects(api, &self.world, &self.pipeline).await
    }

    /// The effects of the history when its messages, which are held back, are delivered as `reorder`
    /// returns them.
    async fn effects_of_delivery(
        &self,
        api: &Api,
        reorder: impl FnOnce(Vec<Message>) -> Vec<Message>,
    ) -> Value {
        let history = History::run(api).await;
        let mut messages = Vec::new();
        for (service, db) in self.sources() {
            messages.extend(take_held_back(service, db).await);
        }
        println!("{} events", messages.len());
        for (subject, event) in reorder(messages) {
            self.pipeline.send(&subject, event.to_string().into_bytes()).await;
        }
        self.pipeline.settle().await;
        history.effects(api, &self.world, &self.pipeline).await
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

/// Takes the messages that the relay would have published, in order.
async fn take_held_back(service: &str, db: &PgPool) -> Vec<Message> {
    let messages = sqlx::query_as(
        "with taken as (update outbox set held_back = false where held_back returning *)
         select concat_ws('.', 'assay', $1, customer_id, noun, action),
                json_build_object(
                    'specversion', '1.0', 'id', event_id, 'source', '/assay/' || $1,
                    'type', concat_ws('.', 'io.assay', $1, noun, action, 'v1'),
                    'subject', record, 'tenantid', customer_id,
                    'time', to_char(created_at at time zone 'utc',
                                    'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'),
                    'datacontenttype', 'application/json', 'data', data)
         from taken order by id",
    );
    messages.bind(service).fetch_all(db).await.unwrap()
}

/// Shuffles by a seed, so that a failing order can be reproduced.
fn shuffled(mut messages: Vec<Message>, seed: u64) -> Vec<Message> {
    let mut numbers = Numbers::of(seed);
    for last in (1..messages.len()).rev() {
        messages.swap(last, numbers.below(last + 1));
    }
    messages
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_and_reordered_events_have_the_same_effect() {
    let scenario = Scenario::new().await;
    let first = scenario.customer().await;
    let (second, third) = (scenario.customer().await, scenario.customer().await);
    let in_order = scenario.effects_in_order(&first).await;
    for (_, db) in scenario.sources() {
        hold_back(db).await;
    }

    let backwards = |messages: Vec<Message>| {
        let again = messages.clone();
        messages.into_iter().rev().chain(again).collect()
    };
    assert_eq!(scenario.effects_of_delivery(&second, backwards).await, in_order);

    let (seed, _) = Uuid::new_v4().as_u64_pair();
    println!("seed {seed}");
    let thrice = |messages: Vec<Message>| {
        let all = [messages.clone(), messages.clone(), messages].concat();
        shuffled(all, seed)
    };
    assert_eq!(scenario.effects_of_delivery(&third, thrice).await, in_order, "seed {seed}");
    scenario.world.stop().await;
}
