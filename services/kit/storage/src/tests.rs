use std::{
    future::{pending, ready},
    time::Duration,
};

use assay_fair::{Shares, Turn};
use futures::FutureExt;
use tokio::{
    sync::{Semaphore, SemaphorePermit, oneshot},
    time::interval,
};
use tonic::Code;

use super::*;

fn place() -> Place {
    Place { customer: CustomerId::new(), folder: Uuid::now_v7(), id: Uuid::now_v7() }
}

fn pieces(pieces: Vec<Result<Bytes, Status>>) -> Pieces {
    Box::pin(stream::iter(pieces))
}

/// Opens a store of files of at most 3 MiB.
fn opened() -> (tempfile::TempDir, FileStore) {
    let folder = tempfile::tempdir().unwrap();
    let config = FileStoreConfig { largest_file_mib: 3, ..FileStoreConfig::folder(folder.path()) };
    (folder, FileStore::open_synced(&config).unwrap())
}

/// Lists all files below a folder, also those that the store does not list.
fn files_in(folder: &std::path::Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_in(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn a_file_is_returned_whole_and_in_ranges() {
    let (_folder, store) = opened();
    let (place, file) =
        (place(), Bytes::from((0..3_000_000_u32).map(|n| n.to_le_bytes()[0]).collect::<Vec<_>>()));
    let sent = file.chunks(70_001).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    assert_eq!(store.put(place, pieces(sent)).await.unwrap(), 3_000_000);

    let (size, chunks) = store.get(place).await.unwrap();
    let chunks: Vec<_> = chunks.try_collect().await.unwrap();
    assert!(chunks.iter().all(|chunk| chunk.len() < CHUNK + (8 << 10)));
    assert_eq!((size, chunks.concat()), (3_000_000, file.to_vec()));
    for range in [0..1, 2_999_999..3_000_000, 100_000..400_000] {
        let chunks = store.get_range(place, range.clone()).await.unwrap();
        let chunks: Vec<_> = chunks.try_collect().await.unwrap();
        let [start, end] = [range.start, range.end].map(|at| usize::try_from(at).unwrap());
        assert!(chunks.concat() == file[start..end], "{range:?}");
    }
    store.delete(place).await.unwrap();
    store.delete(place).await.unwrap();
    assert!(matches!(store.get(place).await.err(), Some(Fault::NotFound("file"))));
}

#[tokio::test]
async fn files_are_listed_with_their_sizes_by_their_age() {
    let (folder, store) = opened();
    let mut places = [place(), place()];
    for place in places {
        store.put(place, pieces(vec![Ok(Bytes::from_static(b"abc"))])).await.unwrap();
    }
    let other = folder.path().join(places[0].customer.to_string().to_uppercase());
    let other = other.join(places[0].folder.to_string());
    fs::create_dir_all(&other).unwrap();
    for path in [folder.path().join("notes.txt"), other.join(places[0].id.to_string())] {
        fs::write(path, "not a file of the store").unwrap();
    }

    let mut listing = store.list(i64::MAX);
    let mut listed = listing.batch().await.unwrap();
    listed.sort_by_key(|file| file.place.id);
    places.sort_by_key(|place| place.id);
    assert_eq!(listed, places.map(|place| Found { place, size: 3 }));
    assert!(listing.batch().await.unwrap().is_empty(), "the end");
    let mut older = store.list(0);
    assert!(older.batch().await.unwrap().is_empty(), "they are younger");
    assert!(!older.is_empty(), "the store has files");
}

#[tokio::test]
async fn a_broken_or_too_large_file_leaves_nothing() {
    let (folder, store) = opened();
    let piece = || Ok(Bytes::from(vec![1; 2 << 20]));
    let broken = vec![piece(), Err(Status::unavailable("gone"))];
    assert!(store.put(place(), pieces(broken)).await.is_err());
    assert!(store.put(place(), pieces(vec![piece(), piece()])).await.is_err());
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn a_file_that_does_not_meet_its_terms_leaves_nothing() {
    let (folder, store) = opened();
    let file = || pieces(vec![Ok(Bytes::from_static(b"ab")), Ok(Bytes::from_static(b"c"))]);
    let little = Terms { room: Some(room(2)), ..Terms::default() };
    let refused = store.receive(place(), file(), little).await.unwrap_err();
    assert_eq!((refused.status.message(), refused.may_appear), ("full", false));
    let other = Terms { sha256: Some([0; 32]), ..Terms::default() };
    let refused = store.receive(place(), file(), other).await.unwrap_err().status;
    assert!(refused.message().contains("is not the SHA-256"), "{refused}");
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new());

    // From FIPS 180-2.
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let sha256 = parse_sha256("Digest", abc).unwrap();
    let terms = Terms { room: Some(room(3)), sha256: Some(sha256), ..Terms::default() };
    let stored = store.receive(place(), file(), terms).await.unwrap();
    assert_eq!(stored, Stored { size: 3, sha256 });
}

/// Room for this many bytes, which is claimed a byte at a time.
fn room(bytes: usize) -> Room {
    let left = Arc::new(Semaphore::new(bytes));
    let more: Claim = Box::new(move |_| {
        let claimed = left.try_acquire().map(SemaphorePermit::forget);
        let full = || Fault::Refused { code: "full", reason: "full".to_owned() };
        ready(claimed.map(|()| 1).map_err(|_| full())).boxed()
    });
    Room { claimed: 0, more }
}

#[tokio::test]
async fn a_file_whose_end_has_failed_may_appear_later() {
    let (folder, store) = opened();
    let place = place();
    // The file cannot get its name.
    fs::create_dir_all(folder.path().join(place.path().to_string())).unwrap();
    let failed =
        store.receive(place, pieces(vec![Ok(Bytes::from_static(b"abc"))]), Terms::default());
    assert!(failed.await.unwrap_err().may_appear);
    let broken = pieces(vec![Err(Status::unavailable("gone"))]);
    assert!(!store.receive(place, broken, Terms::default()).await.unwrap_err().may_appear);
}

#[tokio::test]
async fn pieces_break_off_at_the_end_of_the_program() {
    let file = pieces(vec![Ok(Bytes::from_static(b"abc"))]);
    let (stop, stopped) = oneshot::channel::<()>();
    let end = stopped.map(drop);
    let mut arriving = pieces_until(file.chain(stream::pending()).boxed(), end);
    assert_eq!(arriving.next().await.unwrap().unwrap(), "abc");
    assert!(arriving.next().now_or_never().is_none());
    stop.send(()).unwrap();
    assert_eq!(arriving.next().await.unwrap().unwrap_err().code(), Code::Unavailable);
    assert!(arriving.next().await.is_none());

    let whole = pieces_until(pieces(vec![Ok(Bytes::new())]), pending());
    assert_eq!(whole.count().await, 1);
}

/// A client that sends a byte each second, in parts that are never whole.
#[tokio::test(start_paused = true)]
async fn a_slow_file_is_rejected_while_another_customer_waits() {
    let (_folder, store) = opened();
    let shares = Shares::new(1);
    let drip = || {
        let bytes = stream::unfold(interval(Duration::from_secs(1)), |mut seconds| async move {
            seconds.tick().await;
            Some((Ok::<_, Status>(Bytes::from_static(b"x")), seconds))
        });
        bytes.take(60)
    };
    let terms = || Terms { turn: Some(Turn::new(&shares, CustomerId::new())), ..Terms::default() };
    let alone = store.receive(place(), drip().boxed(), terms()).await.unwrap();
    assert_eq!(alone.size, 60);
    let mut other = Turn::new(&shares, CustomerId::new());
    let (begun, has_begun) = oneshot::channel();
    let mut begun = Some(begun);
    let bytes = drip().inspect(move |_| _ = begun.take().map(|begun| begun.send(())));
    let slow = store.receive(place(), bytes.boxed(), terms());
    let late = async {
        has_begun.await.unwrap();
        other.begin().await
    };
    let (slow, late) = tokio::join!(slow, late);
    assert!(slow.unwrap_err().status.message().contains("slowly"));
    late.unwrap();
}

#[tokio::test]
async fn fewer_files_arrive_at_once_in_a_bucket_than_in_a_folder() {
    let (_folder, store) = opened();
    assert_eq!(store.arrivals_within(240 << 20), 80);
    let config = FileStoreConfig {
        artifacts: Some("s3://bucket/folder".to_owned()),
        s3_region: "us-east-1".to_owned(),
        s3_access_key_id: Some("id".to_owned()),
        s3_secret_access_key: Some("secret".into()),
        ..FileStoreConfig::folder(std::path::Path::new(""))
    };
    assert_eq!(FileStore::open(&config).unwrap().arrivals_within(240 << 20), 16);
}

#[tokio::test]
async fn the_rest_of_a_killed_upload_is_removed_with_its_id() {
    let (folder, store) = opened();
    let place = place();
    let upload = store.store.put_multipart(&place.path()).await.unwrap();
    let mut upload = WriteMultipart::new_with_chunk_size(upload, PART_OF_FOLDER);
    upload.put(Bytes::from(vec![1; 2 << 20]));
    // A killed program does not abort its uploads.
    std::mem::forget(upload);
    assert_eq!(files_in(folder.path()).len(), 1);
    store.delete(place).await.unwrap();
    assert_eq!(files_in(folder.path()), Vec::<PathBuf>::new());
}
