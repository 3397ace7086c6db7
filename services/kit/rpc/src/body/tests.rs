//! Bodies as clients send them: in pieces, too large, late, and many at a time.

use std::io;

use assay_proto::execution::FormFile;
use bytes::Bytes;
use futures::{FutureExt, stream};

use super::*;

fn piece(text: &'static str) -> Piece {
    Piece { chunk: Bytes::from_static(text.as_bytes()), ..Piece::default() }
}

fn start(name: &str) -> Piece {
    let file = FormFile { name: name.to_owned(), ..FormFile::default() };
    Piece { file: Some(file), ..Piece::default() }
}

fn last() -> Piece {
    Piece { last: true, ..Piece::default() }
}

async fn read<T: Send + 'static>(
    pieces: impl Stream<Item = Result<Piece, Status>>,
    parse: fn(Body, &mut Memory) -> Result<T, Fault>,
) -> Result<T, Status> {
    Ok(Intake::new(64).read(CustomerId::new(), pieces, parse).await?.0)
}

fn files(body: Body, _: &mut Memory) -> Result<Vec<String>, Fault> {
    body.files.into_iter().map(|file| io::read_to_string(file).map_err(Fault::internal)).collect()
}

#[tokio::test]
async fn files_are_read_one_after_the_other() {
    let pieces =
        [piece(""), start("1"), piece("a"), piece("b"), start("2"), piece("c"), start("3"), last()];
    assert_eq!(read(stream::iter(pieces.map(Ok)), files).await.unwrap(), ["ab", "c", ""]);
}

#[tokio::test]
async fn pieces_of_any_size_make_up_the_body() {
    for sizes in [&[1, UNIT - 1, 1][..], &[UNIT * 3 + 7], &[UNIT, UNIT], &[7, 3 * UNIT, 5]] {
        let chunks: Vec<Bytes> =
            sizes.iter().zip(b'a'..).map(|(size, byte)| Bytes::from(vec![byte; *size])).collect();
        let pieces = chunks.clone().into_iter().map(|chunk| Piece { chunk, ..Piece::default() });
        let pieces = stream::iter(pieces.chain([last()]).map(Ok).collect::<Vec<_>>());
        let whole = read(pieces, files).await.unwrap();
        assert!(whole[0].as_bytes() == chunks.concat(), "{sizes:?}");
    }
}

#[tokio::test]
async fn an_interrupted_body_is_rejected() {
    let pieces = [Ok(piece("a")), Err(Status::cancelled("gone"))];
    let broken = read(stream::iter(pieces), files).await.unwrap_err();
    assert_eq!(broken.message(), "gone");
    // As a call looks that its client has given up.
    let silent = read(stream::iter([Ok(piece("a"))]), files).await.unwrap_err();
    assert_eq!(silent.message(), "the body broke off");
}

#[tokio::test]
async fn a_body_over_the_limit_is_rejected() {
    let chunk = Bytes::from(vec![b' '; 1 << 20]);
    let pieces = stream::repeat_with(|| Ok(Piece { chunk: chunk.clone(), ..Piece::default() }));
    let refused = read(pieces, files).await;
    assert!(refused.unwrap_err().message().contains("32 MiB"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_times_out() {
    let pieces = stream::iter([Ok(piece("a"))]).chain(stream::pending());
    let late = read(pieces, files).await.unwrap_err();
    assert_eq!(late.message(), "the body did not arrive in time");
}

#[tokio::test(start_paused = true)]
async fn the_bodies_of_one_customer_leave_memory_to_others() {
    let intake = Intake::new(4);
    let (one, other) = (CustomerId::new(), CustomerId::new());
    let mebibyte = |count| {
        let chunk = Bytes::from(vec![b' '; 1 << 20]);
        stream::iter(
            (0..count).map(move |_| Ok(Piece { chunk: chunk.clone(), ..Piece::default() })),
        )
    };
    let mut kept = Vec::new();
    for _ in 0..3 {
        let pieces = mebibyte(1).chain(stream::iter([Ok(last())]));
        kept.push(intake.read(one, pieces, files).await.unwrap());
    }
    // Bodies that are still being sent hold what they have sent.
    let busy = intake.read(one, mebibyte(1).chain(stream::pending()), files).await;
    assert_eq!(busy.unwrap_err().code(), tonic::Code::ResourceExhausted);

    let pieces = mebibyte(1).chain(stream::iter([Ok(last())]));
    intake.read(other, pieces, files).await.unwrap();
    drop(kept);
    let pieces = mebibyte(3).chain(stream::iter([Ok(last())]));
    intake.read(one, pieces, files).await.unwrap();
}

#[tokio::test]
async fn decompressed_bodies_count_with_their_size() {
    let intake = Intake::new(4);
    let (one, other) = (CustomerId::new(), CustomerId::new());
    let bomb = || stream::iter([Ok(piece("bomb")), Ok(last())]);
    let grow = |_: Body, memory: &mut Memory| (0..24).try_for_each(|_| memory.grow(100_000));
    let ((), memory) = intake.read(one, bomb(), grow).await.unwrap();
    assert_eq!(intake.memory.held_by(one), (4 + 24 * 100_000_usize).div_ceil(UNIT));
    assert!(intake.reserve(one, 1 << 20).now_or_never().is_none(), "it holds 2.4 of 3 MiB");
    assert!(intake.reserve(other, 1 << 20).now_or_never().is_some());
    drop(memory);
    assert_eq!(intake.memory.held_by(one), 0);
}
