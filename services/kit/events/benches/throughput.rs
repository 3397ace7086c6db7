//! How many events a second the relay and a consumer carry: in the shell of `make servers`,
//! `cargo bench -p assay-events`.

use std::time::Instant;

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/world.rs"]
mod world;

const EVENTS: i32 = 20_000;

#[tokio::main]
async fn main() {
    let mut world = world::World::new().await;
    world.publish_together(0..EVENTS).await;

    let start = Instant::now();
    world.relay();
    world.wait_until_published().await;
    println!("relay: {:.0} events/s", f64::from(EVENTS) / start.elapsed().as_secs_f64());

    let start = Instant::now();
    world.consumer();
    world.wait_for_effects(usize::try_from(EVENTS).expect("a number")).await;
    println!("consumer: {:.0} events/s", f64::from(EVENTS) / start.elapsed().as_secs_f64());
}
