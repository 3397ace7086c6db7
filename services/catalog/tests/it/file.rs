//! Files of projects: their rows, their bytes, and what remains of uploads and deletions that did not end.

mod lost;
pub(crate) mod resumable;
mod room;

use std::path::{Path, PathBuf};

use assay_proto::catalog::*;
use futures::{FutureExt, Stream, StreamExt, TryStreamExt, channel::oneshot, future, stream};
use tonic::Response;

use crate::{
    user::{User, messages},
    world::{Answer, World, fault, invalid_fields, listed, page},
};

/// Lists all files below a folder.
fn files_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_in(&path) } else { vec![path] }).collect()
}

/// Returns a body of these messages that breaks off when the sender is dropped.
fn breakable<T: Send + 'static>(
    messages: impl IntoIterator<Item = T, IntoIter: Send> + Send + 'static,
) -> (impl Stream<Item = T> + Send + 'static, oneshot::Sender<()>) {
    let (sender, end) = oneshot::channel::<()>();
    let rest = end.into_stream().filter_map(|_| future::ready(None));
    (stream::iter(messages.into_iter().collect::<Vec<_>>()).chain(rest), sender)
}

async fn download(
    user: &User,
    file: &StoredFile,
    range: Option<FileRange>,
) -> Answer<(FileContentsBatch, Vec<u8>)> {
    let request = DownloadFileRequest {
        project_id: file.project_id.clone(),
        id: file.id.clone(),
        range,
        ..DownloadFileRequest::default()
    };
    let mut parts = user.files().download_file(user.call(request)).await?.into_inner();
    let head = parts.message().await?.expect("the first part");
    let chunks: Vec<_> = parts.map_ok(|part| part.chunk).try_collect().await?;
    Ok((head, chunks.concat()))
}

async fn delete(user: &User, file: &StoredFile) -> Answer<()> {
    let request = DeleteFileRequest { project_id: file.project_id.clone(), id: file.id.clone() };
    user.files().delete_file(user.call(request)).await.map(Response::into_inner)
}

/// The number of contents, and of contents that are being stored or removed.
async fn contents(world: &World) -> (i64, i64) {
    let count = "select (select count(*) from content), (select count(*) from stray_content)";
    sqlx::query_as(count).fetch_one(&world.db).await.unwrap()
}

/// Makes all uploads that have not ended appear abandoned.
async fn age(world: &World) {
    let age = "update stray_content set touched_at = now() - interval '1 hour'";
    sqlx::query(age).execute(&world.db).await.unwrap();
}

#[tokio::test]
async fn a_file_is_stored_listed_and_returned_whole_and_in_ranges() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let bytes: Vec<u8> = (0..3_500_000_u32).flat_map(|n| n.to_le_bytes()[..1].to_vec()).collect();
    let mut upload = messages(&project, "Web shop 2.4.msi", &bytes);
    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &bytes);
    let hash: Vec<_> = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let hash = hash.concat();
    upload[0].head.as_mut().unwrap().sha256 = hash.clone();
    let file = user.send_file(upload).await.unwrap();
    assert_eq!((file.size, &file.sha256), (3_500_000, &hash));
    assert_eq!((file.name.as_str(), &file.project_id), ("Web shop 2.4.msi", &project.id));
    assert_eq!(file.url, format!("/api/projects/{}/files/{}/contents", project.id, file.id));

    let (head, whole) = download(&user, &file, None).await.unwrap();
    assert!(whole == bytes);
    assert_eq!(head.file.as_ref(), Some(&file));
    assert_eq!(head.range, None);
    let range = FileRange { first: Some(1_000_000), last: Some(2_999_999) };
    let (head, part) = download(&user, &file, Some(range)).await.unwrap();
    assert_eq!(head.range, Some(range));
    assert!(part == bytes[1_000_000..3_000_000]);
    let beyond = FileRange { first: Some(3_500_000), last: None };
    let (head, part) = download(&user, &file, Some(beyond)).await.unwrap();
    assert!(head.is_unsatisfiable && part.is_empty());

    let other = user.upload(&project, "readme.txt", b"").await.unwrap();
    assert_eq!(download(&user, &other, None).await.unwrap().1, b"");
    let list = |page, sha256| {
        let request = ListFilesRequest { project_id: project.id.clone(), page, sha256 };
        let user = &user;
        async move { listed(user.files().list_files(user.call(request)).await).await.unwrap() }
    };
    assert_eq!(list(None, None).await.0, [other.clone(), file.clone()]);
    let (first, next) = list(Some(page(1, None)), None).await;
    assert_eq!(first, [other]);
    assert_eq!(list(Some(page(1, next)), None).await, (vec![file.clone()], None));
    assert_eq!(list(None, Some(hash)).await.0, [file]);
}

#[tokio::test]
async fn the_same_contents_are_stored_once_in_a_project_until_the_last_file_is_deleted() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let (project, foreign) = (user.project().await, stranger.project().await);
    let first = user.upload(&project, "a.msi", b"MSI").await.unwrap();
    let second = user.upload(&project, "b.msi", b"MSI").await.unwrap();
    assert_ne!(first.id, second.id);
    assert_eq!(contents(&world).await, (1, 0));
    assert_eq!(files_in(&world.folder).len(), 1);
    stranger.upload(&foreign, "a.msi", b"MSI").await.unwrap();
    assert_eq!(files_in(&world.folder).len(), 2, "customers share nothing");

    delete(&user, &first).await.unwrap();
    assert_eq!(fault(delete(&user, &first).await), "not_found");
    assert_eq!(download(&user, &second, None).await.unwrap().1, b"MSI");
    delete(&user, &second).await.unwrap();
    assert_eq!(contents(&world).await, (1, 0));
    assert_eq!(files_in(&world.folder).len(), 1);
    assert_eq!(fault(download(&user, &second, None).await), "not_found");
}

#[tokio::test]
async fn a_refused_or_broken_upload_leaves_nothing() {
    let world = World::start_with_files(2, 1).await;
    let user = world.user().await;
    let project = user.project().await;
    let mut wrong = messages(&project, "a.msi", b"MSI");
    wrong[0].head.as_mut().unwrap().sha256 = "0".repeat(64);
    assert_eq!(invalid_fields(user.send_file(wrong).await), ["digest"]);
    for name in ["", "../a.msi", "a/b", "a\\b", "a\n"] {
        assert_eq!(invalid_fields(user.upload(&project, name, b"MSI").await), ["Name"], "{name:?}");
    }
    let large = vec![0; (2 << 20) + 1];
    assert_eq!(fault(user.upload(&project, "a.msi", &large).await), "too_large");
    let mut announced = messages(&project, "a.msi", b"MSI");
    announced[0].target.as_mut().unwrap().size = Some((2 << 20) + 1);
    assert_eq!(fault(user.send_file(announced).await), "too_large");
    let mut broken = messages(&project, "a.msi", &large[..2 << 20]);
    broken.pop();
    assert_eq!(fault(user.send_file(broken).await), "malformed");
    let mut two = messages(&project, "a.msi", b"MSI");
    two.insert(2, two[0].clone());
    assert_eq!(invalid_fields(user.send_file(two).await), ["file"]);
    let nothing = vec![UploadFileRequest { last: true, ..UploadFileRequest::default() }];
    assert_eq!(invalid_fields(user.send_file(nothing).await), ["file"]);
    let gone = Project { id: uuid::Uuid::now_v7().to_string(), ..Project::default() };
    assert_eq!(fault(user.upload(&gone, "a.msi", b"MSI").await), "not_found");

    assert_eq!(contents(&world).await, (0, 0));
    assert_eq!(files_in(&world.folder), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_sweep_removes_what_an_abandoned_upload_has_left_and_nothing_else() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let kept = user.upload(&project, "a.msi", b"MSI").await.unwrap();

    // The upload neither ends nor goes on.
    let begun = messages(&project, "b.msi", &vec![1; 4 << 20]).into_iter().take(4);
    let request = user.call(stream::iter(begun.collect::<Vec<_>>()).chain(stream::pending()));
    let upload = user.files().upload_file(request).await.unwrap();
    let written = assay_testkit::eventually("bytes of the upload", || async {
        Some(files_in(&world.folder).len()).filter(|count| *count == 2)
    });
    written.await;
    world.files.sweep().await.unwrap();
    assert_eq!(files_in(&world.folder).len(), 2, "the upload may be in progress");
    age(&world).await;
    world.files.sweep().await.unwrap();
    assert_eq!(contents(&world).await, (1, 0));
    assert_eq!(files_in(&world.folder).len(), 1);
    drop(upload);
    assert_eq!(download(&user, &kept, None).await.unwrap().1, b"MSI");
}

#[tokio::test]
async fn bytes_whose_storing_was_not_confirmed_are_left_to_the_sweep() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let mut rest = messages(&project, "b.msi", b"MSI").into_iter();
    sender.unbounded_send(rest.next().unwrap()).unwrap();
    let mut upload = user.files().upload_file(user.call(receiver)).await.unwrap().into_inner();
    let staged =
        assay_testkit::eventually("the upload", || async { files_in(&world.folder).pop() });
    // The file cannot get its name.
    let staged = staged.await.to_string_lossy().into_owned();
    let name = staged.strip_suffix("#1").expect("a file that is not complete");
    std::fs::create_dir(name).unwrap();
    rest.for_each(|message| sender.unbounded_send(message).unwrap());
    assert_eq!(fault(upload.message().await), "unavailable");
    world.files.sweep().await.unwrap();
    assert_eq!(contents(&world).await, (0, 1), "the store may have the file later");

    std::fs::remove_dir(name).unwrap();
    std::fs::write(name, "MSI").unwrap();
    age(&world).await;
    world.files.sweep().await.unwrap();
    assert_eq!(contents(&world).await, (0, 0));
    assert_eq!(files_in(&world.folder), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn an_upload_that_the_sweep_has_given_up_is_not_stored() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    let mut rest = messages(&project, "b.msi", &vec![1; 4 << 20]).into_iter();
    for message in rest.by_ref().take(3) {
        sender.unbounded_send(message).unwrap();
    }
    let mut upload = user.files().upload_file(user.call(receiver)).await.unwrap().into_inner();
    // The row is touched when room is claimed for the first bytes, and not again before the file is stored.
    let begun = assay_testkit::eventually("the upload", || async {
        let size = sqlx::query_scalar("select size from stray_content").fetch_optional(&world.db);
        size.await.unwrap().filter(|size: &i64| *size > 0)
    });
    begun.await;
    age(&world).await;
    world.files.sweep().await.unwrap();
    rest.for_each(|message| sender.unbounded_send(message).unwrap());
    assert_eq!(fault(upload.message().await), "unavailable");
    assert_eq!(contents(&world).await, (0, 0));
    assert_eq!(files_in(&world.folder), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_bytes_of_a_deleted_project_are_removed() {
    let world = World::start().await;
    let user = world.user().await;
    let (project, kept) = (user.project().await, user.project().await);
    for number in 0..5_u8 {
        user.upload(&project, "a.msi", &[number]).await.unwrap();
    }
    user.upload(&project, "again.msi", &[0]).await.unwrap();
    let kept = user.upload(&kept, "a.msi", &[0]).await.unwrap();
    let request = user.call(DeleteProjectRequest { id: project.id.clone() });
    user.projects().delete_project(request).await.unwrap();
    assert_eq!(fault(user.upload(&project, "b.msi", b"MSI").await), "not_found");
    assay_catalog::purge(&world.db).await.unwrap();
    assert_eq!(contents(&world).await, (1, 5));
    world.files.sweep().await.unwrap();
    assert_eq!(contents(&world).await, (1, 0));
    assert_eq!(files_in(&world.folder).len(), 1);
    assert_eq!(download(&user, &kept, None).await.unwrap().1, [0]);
}

#[tokio::test]
async fn files_of_other_customers_and_projects_are_not_found() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let (project, other, foreign) =
        (user.project().await, user.project().await, stranger.project().await);
    let file = user.upload(&project, "a.msi", b"MSI").await.unwrap();
    for (user, project) in [(&user, &other), (&stranger, &foreign), (&stranger, &project)] {
        let elsewhere = StoredFile { project_id: project.id.clone(), ..file.clone() };
        assert_eq!(fault(download(user, &elsewhere, None).await), "not_found");
        assert_eq!(fault(delete(user, &elsewhere).await), "not_found");
        let request = GetFileRequest { project_id: project.id.clone(), id: file.id.clone() };
        assert_eq!(fault(user.files().get_file(user.call(request)).await), "not_found");
    }
    let list = ListFilesRequest { project_id: project.id.clone(), ..ListFilesRequest::default() };
    let list = listed(stranger.files().list_files(stranger.call(list)).await).await;
    assert_eq!(fault(list), "not_found");
    assert_eq!(fault(stranger.upload(&project, "a.msi", b"MSI").await), "not_found");
    let reader = world.colleague(&user, "Read").await;
    assert_eq!(download(&reader, &file, None).await.unwrap().1, b"MSI");
    assert_eq!(fault(reader.upload(&project, "a.msi", b"MSI").await), "forbidden");
    assert_eq!(fault(delete(&reader, &file).await), "forbidden");
}
