//! Uploads whose size the client announces later: the room that they take.

use assay_proto::catalog::*;
use assay_testkit::eventually;
use futures::stream;

use super::{super::breakable, PART, append, contents, creation, get, messages, uploads};
use crate::{
    user::User,
    world::{Answer, World, fault},
};

/// Begins an upload without a size.
async fn begin(user: &User, project: &Project) -> Answer<Upload> {
    let creation = Some(UploadCreation { size: None, ..creation(0) });
    let request = CreateUploadRequest { project_id: project.id.clone(), creation };
    Ok(user.files().create_upload(user.call(request)).await?.into_inner())
}

/// Appends a body with the size of the file.
async fn announce(
    user: &User,
    upload: &Upload,
    offset: i64,
    body: &[u8],
    size: i64,
) -> Answer<Upload> {
    let mut messages = messages(upload, offset, body);
    messages[0].target.as_mut().unwrap().length = Some(size);
    messages.push(AppendUploadRequest { last: true, ..AppendUploadRequest::default() });
    let request = user.call(stream::iter(messages));
    let mut answer = user.files().append_upload(request).await?.into_inner();
    Ok(answer.message().await?.expect("the upload"))
}

/// Leaves the customer this number of bytes.
async fn leave(world: &World, user: &User, left: i64) {
    let fill = "update content set size = (1::bigint << 30) - $2 where customer_id = $1";
    sqlx::query(fill).bind(user.identity.customer).bind(left).execute(&world.db).await.unwrap();
}

/// The number of bytes that uploads have claimed.
async fn claimed(world: &World) -> i64 {
    let claimed = sqlx::query_scalar("select sum(claimed)::bigint from upload");
    claimed.fetch_one(&world.db).await.unwrap()
}

#[tokio::test]
async fn an_upload_without_a_size_claims_room_as_its_bytes_arrive() {
    let world = World::start_with_files(1024, 1).await;
    let user = world.user().await;
    let project = user.project().await;
    user.upload(&project, "a.msi", b"MSI").await.unwrap();
    let upload = begin(&user, &project).await.unwrap();
    assert_eq!((upload.size, claimed(&world).await), (None, 0));
    leave(&world, &user, 40 << 20).await;

    // A part and a beginning: the second one claims 16 MiB, too.
    let body = vec![1; PART + (3 << 20)];
    let (body, sender) = breakable(messages(&upload, 0, &body));
    let _request = user.files().append_upload(user.call(body)).await.unwrap();
    let room = eventually("the room of two parts", || async {
        (claimed(&world).await == 32 << 20).then_some(())
    });
    room.await;
    let large = vec![0; 9 << 20];
    assert_eq!(fault(user.upload(&project, "b.msi", &large).await), "quota_exceeded");
    drop(sender);
    let free = "select received from upload where writer_id is null and claimed = received";
    let free = eventually("the room that nothing has arrived for", || async {
        sqlx::query_scalar(free).fetch_optional(&world.db).await.unwrap()
    });
    let offset: i64 = free.await;
    assert!(offset >= i64::try_from(PART).unwrap());
    user.upload(&project, "b.msi", &large).await.unwrap();

    // The size is refused without room, and counts from then on.
    assert_eq!(fault(announce(&user, &upload, offset, b"", 40 << 20).await), "quota_exceeded");
    assert_eq!(get(&user, &upload).await.unwrap().size, None);
    let size = offset + 10;
    let announced = announce(&user, &upload, offset, b"01234", size).await.unwrap();
    assert_eq!((announced.size, claimed(&world).await), (Some(size), size));
    let whole = append(&user, &upload, offset + 5, b"56789").await.unwrap();
    assert_eq!((whole.offset, whole.file_id.is_some()), (size, true));
}

#[tokio::test]
async fn an_upload_without_a_size_ends_where_there_is_no_room() {
    let world = World::start_with_files(1024, 1).await;
    let user = world.user().await;
    let project = user.project().await;
    user.upload(&project, "a.msi", b"MSI").await.unwrap();
    let upload = begin(&user, &project).await.unwrap();
    leave(&world, &user, 10).await;
    assert_eq!(append(&user, &upload, 0, b"01234").await.unwrap().offset, 5);
    assert_eq!(fault(append(&user, &upload, 5, b"567890").await), "quota_exceeded");
    assert_eq!((get(&user, &upload).await.unwrap().offset, claimed(&world).await), (5, 5));
    let whole = append(&user, &upload, 5, b"56789").await.unwrap();
    assert_eq!((whole.offset, whole.file_id), (10, None));
    assert_eq!(fault(begin(&user, &project).await), "quota_exceeded");
    let whole = announce(&user, &upload, 10, b"", 10).await.unwrap();
    assert_eq!((whole.size, whole.file_id.is_some()), (Some(10), true));
}

/// The size is recorded with the file, so that no client takes an upload without a file for complete.
#[tokio::test]
async fn an_upload_whose_end_fails_has_no_size_yet() {
    let world = World::start_with_files(1, 0).await;
    let user = world.user().await;
    let project = user.project().await;
    let upload = begin(&user, &project).await.unwrap();
    append(&user, &upload, 0, b"abc").await.unwrap();
    std::fs::rename(&world.folder, world.folder.with_extension("gone")).unwrap();
    std::fs::write(&world.folder, "not a folder").unwrap();
    assert_eq!(fault(announce(&user, &upload, 3, b"", 3).await), "unavailable");
    let kept = get(&user, &upload).await.unwrap();
    assert_eq!((kept.size, kept.offset, kept.file_id), (None, 3, None));
    std::fs::remove_file(&world.folder).unwrap();
    std::fs::rename(world.folder.with_extension("gone"), &world.folder).unwrap();
    assert!(announce(&user, &upload, 3, b"", 3).await.unwrap().file_id.is_some());
    world.files.sweep().await.unwrap();
    assert_eq!((uploads(&world).await, contents(&world).await.0), ((1, 0), 1));
}

#[tokio::test]
async fn an_upload_without_a_size_is_not_larger_than_a_file_may_be() {
    let world = World::start_with_files(1, 0).await;
    let user = world.user().await;
    let project = user.project().await;
    let large = begin(&user, &project).await.unwrap();
    assert_eq!(append(&user, &large, 0, &vec![0; 1 << 20]).await.unwrap().offset, 1 << 20);
    assert_eq!(fault(append(&user, &large, 1 << 20, b"x").await), "too_large");
    assert!(announce(&user, &large, 1 << 20, b"", 1 << 20).await.unwrap().file_id.is_some());
}
