//! Events that are given up, and what an operator can do with them.

use assay_events::EVENT;
use assay_testkit::eventually;

use crate::world::World;

async fn with_letters(numbers: [i32; 3]) -> World {
    let mut world = World::new().await;
    for number in numbers {
        world.failures.set(number, "poison");
    }
    world.relay();
    world.consumer();
    world.publish_each(numbers).await;
    world.wait_for_dead_letters(3).await;
    world.failures.clear();
    world
}

#[tokio::test]
async fn a_dead_letter_has_its_origin_and_reason() {
    let world = with_letters([0, 1, 2]).await;
    let all = world.dead_letters().await;
    let event = world.stream("ASSAY_CATALOG").await.get_raw_message(1).await.unwrap();
    let id = event.headers.get("Nats-Msg-Id").unwrap().to_string();
    let letter = all.iter().find(|letter| letter.about.as_ref().unwrap().contains(&id)).unwrap();

    assert_eq!((letter.attempts, letter.customer_id), (5, world.customer));
    let expected = format!(
        "consumer notification, stream ASSAY_CATALOG, sequence 1, event {id}, subject {}",
        event.subject
    );
    assert_eq!(letter.about.as_ref().unwrap(), &expected);
    assert_eq!(letter.reason.as_ref().unwrap(), "internal error: not  digestible");
}

#[tokio::test]
async fn selected_dead_letters_are_retried_or_dropped() {
    let world = with_letters([0, 1, 2]).await;
    let mut ids: Vec<_> = world.dead_letters().await.into_iter().map(|letter| letter.id).collect();
    let mut connection = world.pool.acquire().await.unwrap();
    let dropped = [ids.remove(1), "17000".to_owned()];
    assert_eq!(EVENT.drop(&mut connection, Some(&dropped)).await.unwrap(), 1);
    assert_eq!(world.retry(Some(&ids)).await, 2);
    assert_eq!(world.wait_for_effects(2).await.len(), 2);
    assert!(world.dead_letters().await.is_empty());
    assert_eq!(world.retry(None).await, 0);
}

#[tokio::test]
async fn a_retried_event_that_fails_again_becomes_a_dead_letter_again() {
    let world = with_letters([0, 1, 2]).await;
    world.failures.set(1, "poison");
    assert_eq!(world.retry(None).await, 3);
    world.wait_for_effects(2).await;
    let again = world.wait_for_dead_letters(1).await;
    assert_eq!(again[0].attempts, 5);
}

#[tokio::test]
async fn an_event_that_no_program_survives_becomes_a_dead_letter_and_others_are_applied() {
    let mut world = World::new().await;
    world.failures.set(1, "fatal");
    world.relay();
    world.publish_each(0..5).await;
    world.wait_until_published().await;
    let mut deaths = 0;
    let letters = loop {
        let died = world.failures.deaths();
        let (pool, nats) = (world.pool.clone(), world.nats.clone());
        let program = world.consumer_on(&pool, &nats);
        let letters = eventually("a death or a dead letter", || async {
            let letters = world.dead_letters().await;
            let is_over = letters.len() == 1 && world.effects().await.len() == 4;
            (world.failures.deaths() > died || is_over).then_some(letters)
        })
        .await;
        program.abort();
        deaths += 1;
        if letters.len() == 1 {
            break letters;
        }
        assert!(deaths < 20, "programs die again and again");
    };
    let mut effects = world.wait_for_effects(4).await;
    effects.sort_unstable();
    assert_eq!(effects, [0, 2, 3, 4]);
    assert!(letters[0].reason.as_ref().unwrap().contains("no attempt came to an end"));
    println!("after {deaths} deaths");

    // A new version survives it.
    world.failures.clear();
    let (pool, nats) = (world.pool.clone(), world.nats.clone());
    world.consumer_on(&pool, &nats);
    assert_eq!(world.retry(None).await, 1);
    assert_eq!(*world.wait_for_effects(5).await.last().unwrap(), 1);
}
