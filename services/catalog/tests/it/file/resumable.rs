//! Uploads in several requests: what they count against the quota, and what remains of those that do not end.

mod deferred;
mod slow;

use std::path::PathBuf;

use assay_proto::catalog::*;
use assay_testkit::eventually;
use futures::stream;

use super::{breakable, contents, download, files_in};
use crate::{
    user::User,
    world::{Answer, World, fault},
};

/// Size of the parts in which uploads are stored, in bytes.
const PART: usize = 16 << 20;

fn creation(size: i64) -> UploadCreation {
    UploadCreation { name: "a.img".to_owned(), size: Some(size), ..UploadCreation::default() }
}

pub(crate) async fn begin(user: &User, project: &Project, size: i64) -> Answer<Upload> {
    let creation = Some(creation(size));
    let request = CreateUploadRequest { project_id: project.id.clone(), creation };
    Ok(user.files().create_upload(user.call(request)).await?.into_inner())
}

async fn get(user: &User, upload: &Upload) -> Answer<Upload> {
    let request = GetUploadRequest { project_id: upload.project_id.clone(), id: upload.id.clone() };
    Ok(user.files().get_upload(user.call(request)).await?.into_inner())
}

/// The messages of a request, without the last one.
fn messages(upload: &Upload, offset: i64, body: &[u8]) -> Vec<AppendUploadRequest> {
    let target = AppendUploadTarget {
        project_id: upload.project_id.clone(),
        id: upload.id.clone(),
        offset,
        ..AppendUploadTarget::default()
    };
    let first = AppendUploadRequest { target: Some(target), ..AppendUploadRequest::default() };
    let chunks = body.chunks(1 << 20).map(|chunk| AppendUploadRequest {
        chunk: chunk.to_vec().into(),
        ..AppendUploadRequest::default()
    });
    std::iter::once(first).chain(chunks).collect()
}

pub(crate) async fn append(
    user: &User,
    upload: &Upload,
    offset: i64,
    body: &[u8],
) -> Answer<Upload> {
    let last = AppendUploadRequest { last: true, ..AppendUploadRequest::default() };
    let messages = stream::iter(messages(upload, offset, body).into_iter().chain([last]));
    let mut answer = user.files().append_upload(user.call(messages)).await?.into_inner();
    Ok(answer.message().await?.expect("the upload"))
}

async fn delete(user: &User, upload: &Upload) -> Answer<()> {
    let request =
        DeleteUploadRequest { project_id: upload.project_id.clone(), id: upload.id.clone() };
    user.files().delete_upload(user.call(request)).await.map(|_| ())
}

/// The number of uploads and of their parts.
async fn uploads(world: &World) -> (i64, i64) {
    let count = "select (select count(*) from upload), (select count(*) from upload_part)";
    sqlx::query_as(count).fetch_one(&world.db).await.unwrap()
}

#[tokio::test]
async fn parts_become_one_file_and_leave_nothing() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let bytes: Vec<u8> =
        (0..40_000_003_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[3]).collect();
    let upload = begin(&user, &project, 40_000_003).await.unwrap();
    assert_eq!(append(&user, &upload, 0, &bytes[..3]).await.unwrap().offset, 3);
    // Two parts, and the beginning of a third one.
    let most = append(&user, &upload, 3, &bytes[3..35_000_000]).await.unwrap();
    assert_eq!((most.offset, most.file_id), (35_000_000, None));
    assert_eq!(uploads(&world).await, (1, 4));
    assert_eq!(files_in(&world.folder).len(), 4);
    let whole = append(&user, &upload, 35_000_000, &bytes[35_000_000..]).await.unwrap();
    assert_eq!(Some(whole.offset), whole.size);

    let id = whole.file_id.unwrap();
    let request = GetFileRequest { project_id: project.id.clone(), id };
    let file = user.files().get_file(user.call(request)).await.unwrap().into_inner();
    assert!(download(&user, &file, None).await.unwrap().1 == bytes);
    world.files.sweep().await.unwrap();
    assert_eq!((uploads(&world).await, contents(&world).await), ((1, 0), (1, 0)));
    assert_eq!(files_in(&world.folder).len(), 1);

    // Equal bytes are stored once, however they arrive.
    let again = begin(&user, &project, 40_000_003).await.unwrap();
    append(&user, &again, 0, &bytes).await.unwrap();
    world.files.sweep().await.unwrap();
    assert_eq!(contents(&world).await, (1, 0));
    assert_eq!(files_in(&world.folder).len(), 1);
}

#[tokio::test]
async fn a_request_that_breaks_off_keeps_what_has_arrived() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let upload = begin(&user, &project, 40 << 20).await.unwrap();
    let body = vec![1; PART + (3 << 20)];
    let (body, sender) = breakable(messages(&upload, 0, &body));
    let request = user.files().append_upload(user.call(body)).await.unwrap();
    let mut request = Box::pin(async move { request.into_inner().message().await });
    let part = i64::try_from(PART).unwrap();
    let recorded = eventually("the first part", || async {
        (get(&user, &upload).await.unwrap().offset == part).then_some(())
    });
    tokio::select! {
        answer = &mut request => panic!("the request has ended: {answer:?}"),
        () = recorded => {}
    }
    assert_eq!(fault(append(&user, &upload, part, b"x").await), "upload_in_use");
    drop(sender);
    request.await.unwrap_err();
    let rest = eventually("the end of the request", || async {
        let offset = get(&user, &upload).await.unwrap().offset;
        let rest = vec![1; (40 << 20) - usize::try_from(offset).unwrap()];
        append(&user, &upload, offset, &rest).await.ok()
    });
    assert!(rest.await.file_id.is_some());
}

#[tokio::test]
async fn an_upload_counts_against_the_quota_from_its_beginning() {
    let world = World::start_with_files(1024, 1).await;
    let (user, other) = (world.user().await, world.user().await);
    let (project, elsewhere) = (user.project().await, other.project().await);
    let upload = begin(&user, &project, (1 << 30) - 10).await.unwrap();
    assert_eq!(fault(begin(&user, &project, 11).await), "quota_exceeded");
    assert_eq!(fault(user.upload(&project, "b.img", b"0123456789X").await), "quota_exceeded");
    assert_eq!(fault(begin(&user, &project, (1 << 30) + 1).await), "too_large");
    begin(&other, &elsewhere, 11).await.unwrap();
    user.upload(&project, "b.img", b"0123456789").await.unwrap();
    assert_eq!(fault(begin(&user, &project, 1).await), "quota_exceeded");
    delete(&user, &upload).await.unwrap();
    begin(&user, &project, 11).await.unwrap();
}

#[tokio::test]
async fn a_customer_has_a_limited_number_of_uploads_and_an_upload_of_parts() {
    let world = World::start().await;
    let (user, other) = (world.user().await, world.user().await);
    let (project, elsewhere) = (user.project().await, other.project().await);
    let upload = begin(&user, &project, 100).await.unwrap();
    append(&user, &upload, 0, b"abc").await.unwrap();
    let parts = "insert into upload_part (customer_id, upload_id, position, content_id)
                 select customer_id, upload_id, -number, gen_random_uuid()
                 from upload_part, generate_series(1, 9999) number";
    sqlx::query(parts).execute(&world.db).await.unwrap();
    assert_eq!(fault(append(&user, &upload, 3, b"d").await), "too_many_parts");
    assert_eq!(get(&user, &upload).await.unwrap().offset, 3);

    let open = "insert into upload
                    (customer_id, id, project_id, name, content_type, metadata, size, claimed, expires_at)
                select customer_id, gen_random_uuid(), project_id, name, content_type, metadata, size,
                       claimed, expires_at
                from upload, generate_series(1, 999)";
    sqlx::query(open).execute(&world.db).await.unwrap();
    assert_eq!(fault(begin(&user, &project, 1).await), "too_many_uploads");
    begin(&other, &elsewhere, 1).await.unwrap();
    delete(&user, &upload).await.unwrap();
    begin(&user, &project, 1).await.unwrap();
}

#[tokio::test]
async fn expired_and_deleted_uploads_leave_nothing() {
    let world = World::start().await;
    let user = world.user().await;
    let (project, gone) = (user.project().await, user.project().await);
    let expired = begin(&user, &project, 100).await.unwrap();
    append(&user, &expired, 0, b"abc").await.unwrap();
    let deleted = begin(&user, &project, 100).await.unwrap();
    append(&user, &deleted, 0, b"abc").await.unwrap();
    delete(&user, &deleted).await.unwrap();
    assert_eq!(fault(delete(&user, &deleted).await), "not_found");
    assert_eq!(fault(append(&user, &deleted, 3, b"d").await), "not_found");
    let orphan = begin(&user, &gone, 100).await.unwrap();
    append(&user, &orphan, 0, b"abc").await.unwrap();
    let request = user.call(DeleteProjectRequest { id: gone.id.clone() });
    user.projects().delete_project(request).await.unwrap();
    assert_eq!(fault(append(&user, &orphan, 3, b"d").await), "not_found");
    assert_eq!(fault(get(&user, &orphan).await), "not_found");
    assay_catalog::purge(&world.db).await.unwrap();
    world.files.sweep().await.unwrap();
    assert_eq!((uploads(&world).await, files_in(&world.folder).len()), ((1, 1), 1));

    let age = "update upload set expires_at = now() - interval '1 second'";
    sqlx::query(age).execute(&world.db).await.unwrap();
    assert_eq!(fault(get(&user, &expired).await), "not_found");
    assert_eq!(fault(append(&user, &expired, 3, b"d").await), "not_found");
    world.files.sweep().await.unwrap();
    assert_eq!((uploads(&world).await, contents(&world).await), ((0, 0), (0, 0)));
    assert_eq!(files_in(&world.folder), Vec::<PathBuf>::new());
}

/// A program that was killed leaves a writer behind, and a part that is not counted.
#[tokio::test]
async fn a_request_that_has_died_gives_way() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let upload = begin(&user, &project, 6).await.unwrap();
    append(&user, &upload, 0, b"abc").await.unwrap();
    let die = "update upload set writer_id = id, written_at = now() - $1::interval";
    sqlx::query(die).bind("1 minute").execute(&world.db).await.unwrap();
    assert_eq!(fault(append(&user, &upload, 3, b"def").await), "upload_in_use");
    sqlx::query(die).bind("3 minutes").execute(&world.db).await.unwrap();
    assert!(append(&user, &upload, 3, b"def").await.unwrap().file_id.is_some());
}

#[tokio::test]
async fn an_empty_file_that_cannot_be_stored_leaves_no_upload() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    std::fs::remove_dir_all(&world.folder).unwrap();
    std::fs::write(&world.folder, "not a folder").unwrap();
    assert_eq!(fault(begin(&user, &project, 0).await), "unavailable");
    assert_eq!(uploads(&world).await, (0, 0));
    std::fs::remove_file(&world.folder).unwrap();
    std::fs::create_dir(&world.folder).unwrap();
    assert!(begin(&user, &project, 0).await.unwrap().file_id.is_some());

    // A program may have died before it has stored the file.
    let kept = begin(&user, &project, 0).await.unwrap();
    let die = "update upload set file_id = null where id = $1::uuid";
    sqlx::query(die).bind(&kept.id).execute(&world.db).await.unwrap();
    assert!(append(&user, &kept, 0, b"").await.unwrap().file_id.is_some());
}

#[tokio::test]
async fn an_upload_whose_part_is_lost_is_a_conflict() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let upload = begin(&user, &project, 6).await.unwrap();
    append(&user, &upload, 0, b"abc").await.unwrap();
    for part in files_in(&world.folder) {
        std::fs::remove_file(part).unwrap();
    }
    let lost = append(&user, &upload, 3, b"def").await.unwrap_err();
    assert!(lost.message().contains("begin it again"), "{lost}");
    assert_eq!(fault(Err::<(), _>(lost)), "upload_part_missing");
    delete(&user, &upload).await.unwrap();
    world.files.sweep().await.unwrap();
    assert_eq!((uploads(&world).await, contents(&world).await), ((0, 0), (0, 0)));
}

/// The messages of a request that begins an upload with its body, without the last one.
fn creating(project: &Project, size: i64, body: &[u8]) -> Vec<AppendUploadRequest> {
    let upload = Upload { project_id: project.id.clone(), ..Upload::default() };
    let mut messages = messages(&upload, 0, body);
    messages[0].target.as_mut().unwrap().creation = Some(creation(size));
    messages
}

#[tokio::test]
async fn an_upload_begins_with_all_of_a_body_or_not_at_all() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let last = || AppendUploadRequest { last: true, ..AppendUploadRequest::default() };
    let send = async |messages: Vec<AppendUploadRequest>| {
        let request = user.call(stream::iter(messages));
        let mut answer = user.files().append_upload(request).await?.into_inner();
        Ok::<_, tonic::Status>(answer.message().await?.expect("the upload"))
    };
    let mut whole = creating(&project, 3, b"abc");
    whole.push(last());
    let whole = send(whole).await.unwrap();
    assert_eq!((whole.offset, whole.file_id.is_some()), (3, true));
    let mut beginning = creating(&project, 6, b"abc");
    beginning.push(last());
    let beginning = send(beginning).await.unwrap();
    assert_eq!((beginning.offset, &beginning.file_id), (3, &None));
    assert!(append(&user, &beginning, 3, b"def").await.unwrap().file_id.is_some());
    let mut empty = creating(&project, 0, b"");
    empty.push(last());
    assert!(send(empty).await.unwrap().file_id.is_some());
    assert_eq!(uploads(&world).await, (3, 0));

    assert_eq!(fault(send(creating(&project, 6, b"abc")).await), "malformed", "it breaks off");
    let mut long = creating(&project, 2, b"abc");
    long.push(last());
    assert_eq!(fault(send(long).await), "too_large");
    world.files.sweep().await.unwrap();
    assert_eq!(uploads(&world).await, (3, 0));
    assert_eq!(contents(&world).await.1, 0);
}
