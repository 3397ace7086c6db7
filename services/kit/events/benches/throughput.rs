//! How many events a second the relay and a consumer carry: in the shell of `make servers`,
//! `cargo bench -p assay-events`.

#[expect(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it"]
mod it {
    pub(crate) mod world;
}

use std::time::Instant;

use self::it::world::World;

const EVENTS: i32 = 20_000;

#[tokio::main]
async fn main() {
    let mut world = World::new().await;
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
