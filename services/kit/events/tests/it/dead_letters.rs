//! Operations on dead letters.

use assay_events::{DeadLetter, Selection};
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
    wait_for(&world, 3).await;
    world.failures.clear();
    world
}

async fn wait_for(world: &World, count: u64) {
    eventually("dead letters", || async {
        (world.messages("ASSAY_DEAD_LETTERS").await == count).then_some(())
    })
    .await;
}

async fn listed(world: &World, selection: &Selection) -> Vec<DeadLetter> {
    let mut all = Vec::new();
    let count =
        world.dead_letters().await.list(selection, |letter| all.push(letter)).await.unwrap();
    assert_eq!(u64::try_from(all.len()).unwrap(), count);
    all
}

#[tokio::test]
async fn operations_without_dead_letters_do_nothing() {
    let world = World::new().await;
    let letters = world.dead_letters().await;
    assert_eq!(letters.replay(&Selection::All).await.unwrap(), 0);
    assert_eq!(letters.drop(&Selection::Consumer("notification".to_owned())).await.unwrap(), 0);
    assert!(listed(&world, &Selection::All).await.is_empty());
    let unknown = letters.replay(&Selection::Ids(vec![0, 7])).await.unwrap_err();
    assert_eq!(unknown.to_string(), "no such dead letter: 0, 7");
}

#[tokio::test]
async fn a_dead_letter_has_its_origin_and_reason() {
    let world = with_letters([0, 1, 2]).await;
    let all = listed(&world, &Selection::All).await;
    let [first, ..] = &all[..] else { panic!("{all:?}") };
    let first_event = world.stream("ASSAY_CATALOG").await.get_raw_message(1).await.unwrap();
    let event = first_event.headers.get("Nats-Msg-Id").unwrap().to_string();

    assert_eq!((first.id, first.attempts.as_str()), (1, "5"));
    assert_eq!((first.stream.as_str(), first.consumer.as_str()), ("catalog", "notification"));
    assert_eq!(first.subject, first_event.subject.to_string());
    assert_eq!(first.reason, "internal error: not  digestible");
    assert_eq!(first.event.unwrap().to_string(), event);
    assert_eq!(listed(&world, &Selection::Consumer("notification".to_owned())).await.len(), 3);
    assert!(listed(&world, &Selection::Consumer("catalog".to_owned())).await.is_empty());
}

#[tokio::test]
async fn selected_dead_letters_are_replayed_or_dropped() {
    let world = with_letters([0, 1, 2]).await;
    let letters = world.dead_letters().await;
    let some_missing = letters.drop(&Selection::Ids(vec![1, 2, 9])).await.unwrap_err();
    assert_eq!(some_missing.to_string(), "no such dead letter: 9");
    wait_for(&world, 3).await;

    assert_eq!(letters.drop(&Selection::Ids(vec![2, 2])).await.unwrap(), 1);
    assert_eq!(letters.replay(&Selection::Ids(vec![3, 1])).await.unwrap(), 2);
    assert_eq!(world.wait_for_effects(2).await.len(), 2);
    wait_for(&world, 0).await;
    assert_eq!(letters.replay(&Selection::All).await.unwrap(), 0);
}

#[tokio::test]
async fn a_replayed_event_that_fails_again_becomes_a_dead_letter_again() {
    let world = with_letters([0, 1, 2]).await;
    world.failures.set(1, "poison");
    assert_eq!(world.dead_letters().await.replay(&Selection::All).await.unwrap(), 3);
    world.wait_for_effects(2).await;
    wait_for(&world, 1).await;
    let again = listed(&world, &Selection::All).await;
    assert_eq!((again[0].id, again[0].attempts.as_str()), (4, "5"));
}
