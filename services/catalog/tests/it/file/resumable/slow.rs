//! Uploads whose bytes arrive slowly.

use std::time::Duration;

use assay_proto::catalog::*;
use assay_testkit::eventually;
use futures::{StreamExt, stream};
use tokio::{task::JoinSet, time::interval};

use super::{begin, files_in, get, messages};
use crate::{user::User, world::World};

/// Begins requests whose clients send a byte each second.
async fn drip(user: &User, project: &Project, count: usize) -> (Vec<Upload>, JoinSet<()>) {
    let (mut uploads, mut requests) = (Vec::new(), JoinSet::new());
    for _ in 0..count {
        let upload = begin(user, project, 100).await.unwrap();
        let beginning = stream::iter(messages(&upload, 0, b"slow"));
        let beats = stream::unfold(interval(Duration::from_secs(1)), |mut seconds| async move {
            seconds.tick().await;
            Some((AppendUploadRequest { chunk: "x".into(), ..Default::default() }, seconds))
        });
        let (mut files, request) = (user.files(), user.call(beginning.chain(beats)));
        requests.spawn(async move {
            let answer = files.append_upload(request).await.unwrap().into_inner().message().await;
            drop(answer);
        });
        uploads.push(upload);
    }
    (uploads, requests)
}

#[tokio::test]
async fn slow_requests_of_two_customers_give_way_to_a_third_and_keep_what_has_arrived() {
    let world = World::start().await;
    let (first, second, third) = (world.user().await, world.user().await, world.user().await);
    let project = first.project().await;
    let (uploads, _requests) = drip(&first, &project, 12).await;
    let (others, _other_requests) = drip(&second, &second.project().await, 4).await;
    let begun =
        eventually("all permits", || async { (files_in(&world.folder).len() == 16).then_some(()) });
    begun.await;

    third.upload(&third.project().await, "a.msi", b"MSI").await.unwrap();
    // It is the part whose turn ends first, of either customer.
    let of_first = uploads.iter().map(|upload| (&first, upload));
    let all: Vec<_> = of_first.chain(others.iter().map(|upload| (&second, upload))).collect();
    let kept = eventually("a part that has ended early", || async {
        let offsets = stream::iter(&all).then(|(user, upload)| get(user, upload));
        let offsets: Vec<_> = offsets.map(|upload| upload.unwrap().offset).collect().await;
        offsets.into_iter().find(|offset| *offset > 0)
    });
    assert!(kept.await >= 4);
}

#[tokio::test]
async fn a_program_that_stops_stores_what_has_arrived_and_lets_go_of_the_upload() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let upload = begin(&user, &project, 10 << 20).await.unwrap();
    let body = vec![1; 3 << 20];
    let pending = stream::iter(messages(&upload, 0, &body)).chain(stream::pending());
    let request = user.files().append_upload(user.call(pending)).await.unwrap();
    let mut requests = JoinSet::new();
    requests.spawn(async move { request.into_inner().message().await });
    let begun = eventually("the part", || async {
        let sizes = files_in(&world.folder).into_iter().map(|path| path.metadata().unwrap().len());
        (sizes.sum::<u64>() >= 3 << 20).then_some(())
    });
    begun.await;

    world.runtime.stop(Duration::from_secs(20)).await.unwrap();
    let state = "select received, writer_id is null from upload";
    let state: (i64, bool) = sqlx::query_as(state).fetch_one(&world.db).await.unwrap();
    assert_eq!(state, (3 << 20, true));
}
