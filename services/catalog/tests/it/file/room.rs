//! The room that files take in the quota of their customer, from before they are stored.

use std::{path::PathBuf, time::Duration};

use assay_proto::catalog::*;
use assay_testkit::eventually;
use futures::channel::oneshot;
use tonic::Streaming;
use uuid::Uuid;

use super::{age, breakable, contents, files_in};
use crate::{
    user::{User, messages},
    world::{World, fault},
};

/// Begins an upload of unknown size, and waits for its room. Its body breaks off when the sender is dropped.
async fn begin(
    world: &World,
    user: &User,
    project: &Project,
) -> (Streaming<StoredFile>, oneshot::Sender<()>) {
    let (body, sender) = breakable(messages(project, "b.msi", b"MSI").into_iter().take(2));
    let upload = user.files().upload_file(user.call(body)).await.unwrap().into_inner();
    let claimed = eventually("the claim", || async {
        let size = sqlx::query_scalar("select sum(size)::bigint from stray_content");
        let size: Option<i64> = size.fetch_one(&world.db).await.unwrap();
        (size == Some(16 << 20)).then_some(())
    });
    claimed.await;
    (upload, sender)
}

#[tokio::test]
async fn a_customer_has_no_more_bytes_than_its_limit() {
    let world = World::start_with_files(2048, 1).await;
    let (user, other) = (world.user().await, world.user().await);
    let (project, elsewhere) = (user.project().await, other.project().await);
    user.upload(&project, "a.msi", b"MSI").await.unwrap();
    let grow = "update content set size = (1::bigint << 30) - 10 where customer_id = $1";
    sqlx::query(grow).bind(user.identity.customer).execute(&world.db).await.unwrap();
    assert_eq!(fault(user.upload(&project, "b.msi", b"0123456789X").await), "quota_exceeded");
    let mut announced = messages(&project, "b.msi", b"01234");
    announced[0].target.as_mut().unwrap().size = Some(11);
    assert_eq!(fault(user.send_file(announced).await), "quota_exceeded");
    other.upload(&elsewhere, "b.msi", b"0123456789X").await.unwrap();
    user.upload(&project, "b.msi", b"0123456789").await.unwrap();
    assert_eq!(fault(user.upload(&project, "c.msi", b"x").await), "quota_exceeded");
    assert_eq!(contents(&world).await, (3, 0));
}

#[tokio::test]
async fn a_file_claims_room_before_it_is_stored() {
    let world = World::start_with_files(1024, 1).await;
    let user = world.user().await;
    let project = user.project().await;
    user.upload(&project, "a.msi", b"MSI").await.unwrap();
    // 20 MiB are left. A file of unknown size claims 16 MiB at once.
    let grow = "update content set size = (1::bigint << 30) - (20 << 20)";
    sqlx::query(grow).execute(&world.db).await.unwrap();
    let _upload = begin(&world, &user, &project).await;
    let large = vec![0; 5 << 20];
    assert_eq!(fault(user.upload(&project, "c.msi", &large).await), "quota_exceeded");
    age(&world).await;
    world.files.sweep().await.unwrap();
    user.upload(&project, "c.msi", &large).await.unwrap();
}

#[tokio::test]
async fn an_upload_that_breaks_off_gives_its_room_back_without_the_sweep() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let (mut upload, sender) = begin(&world, &user, &project).await;
    drop(sender);
    upload.message().await.unwrap_err();
    let free = eventually("the end of the claim", || async {
        (contents(&world).await == (0, 0)).then_some(())
    });
    free.await;
    assert_eq!(files_in(&world.folder), Vec::<PathBuf>::new());
}

/// Number of uploads of one customer that may have bytes in memory at the same time.
const TURNS: usize = 12;

/// Returns the ids of the contents that are arriving, oldest first.
async fn arriving(world: &World) -> Vec<Uuid> {
    let ids = "select content_id from stray_content where size > 0 order by content_id";
    sqlx::query_scalar(ids).fetch_all(&world.db).await.unwrap()
}

#[tokio::test]
async fn an_upload_that_waits_for_its_turn_gives_its_room_back_when_its_client_goes() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut uploads = Vec::new();
    for count in 1..=TURNS + 1 {
        let (body, sender) = breakable(messages(&project, "b.msi", b"MSI").into_iter().take(2));
        let upload = user.files().upload_file(user.call(body)).await.unwrap().into_inner();
        uploads.push((upload, sender));
        let claimed = eventually("the claim", || async {
            (arriving(&world).await.len() == count).then_some(())
        });
        claimed.await;
    }
    let waiting = arriving(&world).await[TURNS];
    drop(uploads.pop());
    let free = eventually("the end of the claim", || async {
        let others = arriving(&world).await;
        (!others.contains(&waiting)).then_some(others.len())
    });
    assert_eq!(free.await, TURNS, "the others hold their turns");
}

#[tokio::test]
async fn an_upload_that_the_end_of_the_program_breaks_off_gives_its_room_back() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let (mut upload, _sender) = begin(&world, &user, &project).await;
    let (stopped, answer) =
        tokio::join!(world.runtime.stop(Duration::from_secs(20)), upload.message());
    stopped.unwrap();
    assert_eq!(fault(answer), "unavailable");
    assert_eq!(contents(&world).await, (0, 0));
    assert_eq!(files_in(&world.folder), Vec::<PathBuf>::new());
}
