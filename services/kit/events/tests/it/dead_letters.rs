//! What an operator does about dead letters.

use assay_events::{DeadLetter, Which};
use assay_testkit::eventually;

use crate::world::World;

async fn with_letters(numbers: [i32; 3]) -> World {
    let mut world = World::new().await;
    for number in numbers {
        world.trouble.set(number, "poison");
    }
    world.relay();
    world.consumer();
    world.tell(numbers).await;
    are_there(&world, 3).await;
    world.trouble.clear();
    world
}

async fn are_there(world: &World, count: u64) {
    eventually("dead letters", || async {
        (world.messages("ASSAY_DEAD_LETTERS").await == count).then_some(())
    })
    .await;
}

async fn listed(world: &World, which: &Which) -> Vec<DeadLetter> {
    let mut all = Vec::new();
    let count = world.dead_letters().await.list(which, |letter| all.push(letter)).await.unwrap();
    assert_eq!(u64::try_from(all.len()).unwrap(), count);
    all
}

#[tokio::test]
async fn where_there_are_none_there_is_nothing_to_do() {
    let world = World::new().await;
    let letters = world.dead_letters().await;
    assert_eq!(letters.replay(&Which::All).await.unwrap(), 0);
    assert_eq!(letters.drop(&Which::Of("notification".to_owned())).await.unwrap(), 0);
    assert!(listed(&world, &Which::All).await.is_empty());
    let unknown = letters.replay(&Which::These(vec![0, 7])).await.unwrap_err();
    assert_eq!(unknown.to_string(), "there is no dead letter 0, 7");
}

#[tokio::test]
async fn each_tells_whose_it_is_and_why() {
    let world = with_letters([0, 1, 2]).await;
    let all = listed(&world, &Which::All).await;
    let [first, ..] = &all[..] else { panic!("{all:?}") };
    let first_event = world.stream("ASSAY_CATALOG").await.get_raw_message(1).await.unwrap();
    let event = first_event.headers.get("Nats-Msg-Id").unwrap().to_string();

    assert_eq!((first.id, first.tries.as_str()), (1, "5"));
    assert_eq!((first.stream.as_str(), first.consumer.as_str()), ("catalog", "notification"));
    assert_eq!(first.subject, first_event.subject.to_string());
    assert_eq!(first.reason, "internal error: not  to be digested");
    assert_eq!(first.event.unwrap().to_string(), event);
    assert_eq!(listed(&world, &Which::Of("notification".to_owned())).await.len(), 3);
    assert!(listed(&world, &Which::Of("catalog".to_owned())).await.is_empty());
}

#[tokio::test]
async fn some_are_delivered_again_and_some_dropped() {
    let world = with_letters([0, 1, 2]).await;
    let letters = world.dead_letters().await;
    let some_missing = letters.drop(&Which::These(vec![1, 2, 9])).await.unwrap_err();
    assert_eq!(some_missing.to_string(), "there is no dead letter 9");
    are_there(&world, 3).await;

    assert_eq!(letters.drop(&Which::These(vec![2, 2])).await.unwrap(), 1);
    assert_eq!(letters.replay(&Which::These(vec![3, 1])).await.unwrap(), 2);
    assert_eq!(world.has_effects(2).await.len(), 2);
    are_there(&world, 0).await;
    assert_eq!(letters.replay(&Which::All).await.unwrap(), 0);
}

#[tokio::test]
async fn one_that_fails_again_is_one_again() {
    let world = with_letters([0, 1, 2]).await;
    world.trouble.set(1, "poison");
    assert_eq!(world.dead_letters().await.replay(&Which::All).await.unwrap(), 3);
    world.has_effects(2).await;
    are_there(&world, 1).await;
    let again = listed(&world, &Which::All).await;
    assert_eq!((again[0].id, again[0].tries.as_str()), (4, "5"));
}
