//! Files whose bytes the store has lost, for example because it was restored from an older backup.

use super::{contents, download, files_in};
use crate::{
    user::messages,
    world::{World, fault},
};

#[tokio::test]
async fn bytes_that_the_store_has_lost_are_those_of_their_files_again_when_they_arrive_again() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let first = user.send_file(messages(&project, "a.txt", b"the same")).await.unwrap();
    for path in files_in(&world.folder) {
        std::fs::remove_file(path).unwrap();
    }
    assert_eq!(fault(download(&user, &first, None).await), "not_found");

    let second = user.send_file(messages(&project, "b.txt", b"the same")).await.unwrap();

    for file in [&first, &second] {
        assert_eq!(download(&user, file, None).await.unwrap().1, b"the same");
    }
    assert_eq!((contents(&world).await, files_in(&world.folder).len()), ((1, 0), 1));
}
