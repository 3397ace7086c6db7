//! Lists of rows that are small, large, few and many.

use std::sync::{Arc, Mutex};

use assay_proto::{
    Batch as _, NotificationOrigin,
    notification::{Notification, NotificationBatch},
};

use super::*;

type Rows = std::future::Ready<Result<Vec<Notification>, Fault>>;

/// A list of `count` rows, of `size` bytes each, whose cursors count down to 1.
fn rows(count: i64, size: usize) -> impl Fn(Slice) -> Rows + Send + 'static {
    move |slice: Slice| {
        let before = slice.after.map_or(count + 1, |after| after.parse().unwrap());
        let numbers = (1..before).rev().take(usize::try_from(slice.limit).unwrap());
        let row = |number: i64| Notification {
            id: number.to_string(),
            source: "x".repeat(size),
            origin: NotificationOrigin::Assay.into(),
            ..Notification::default()
        };
        std::future::ready(Ok(numbers.map(row).collect()))
    }
}

async fn answered(page: Page, count: i64, size: usize) -> Vec<NotificationBatch> {
    let answer = answer(Some(page), rows(count, size)).await.unwrap();
    answer.into_inner().try_collect().await.unwrap()
}

fn ids(batches: Vec<NotificationBatch>) -> Vec<i64> {
    let items = batches.into_iter().flat_map(|batch| batch.parse().unwrap());
    items.map(|item| item.id.parse().unwrap()).collect()
}

#[tokio::test]
async fn a_list_has_each_row_once() {
    for count in [0, 1, FIRST_SLICE - 1, FIRST_SLICE, FIRST_SLICE + NEXT_SLICES, 3456] {
        let all: Vec<i64> = (1..=count).rev().collect();
        assert_eq!(ids(answered(Page::default(), count, 10).await), all);
    }
}

#[tokio::test]
async fn messages_stay_within_the_limit_of_receivers() {
    let batches = answered(Page::default(), 300, 64 << 10).await;
    assert!(batches.len() > 50);
    assert!(batches.iter().all(|batch| batch.encoded_len() < 2 * MESSAGE_SIZE));
}

#[tokio::test]
async fn pages_follow_each_other_to_the_end() {
    let (mut cursor, mut seen) = (None, Vec::new());
    loop {
        let page = Page { limit: Some(7), cursor: cursor.take(), q: None };
        let batches = answered(page, 21, 10).await;
        cursor = batches[0].next_cursor.clone();
        seen.extend(ids(batches));
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, (1..=21).rev().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_slice_of_large_rows_ends_early_and_the_next_one_has_a_lower_limit() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let read = rows(300, 64 << 10);
    let noted = asked.clone();
    let heavy = move |slice: Slice| {
        let rows = read(slice.clone());
        noted.lock().unwrap().push(slice.limit);
        async move {
            let rows = stream::iter(rows.await?).map(Ok::<_, Fault>);
            let rows = slice.read(rows).await?;
            assert!(rows.items.len() <= 16, "{} rows were kept", rows.items.len());
            Ok(rows)
        }
    };
    let all: Vec<Vec<Notification>> = whole(None, None, heavy).try_collect().await.unwrap();
    assert_eq!(all.iter().map(Vec::len).sum::<usize>(), 300);
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0], FIRST_SLICE);
    assert!(asked[1..].iter().all(|limit| *limit <= 16), "{asked:?}");
}

#[tokio::test]
async fn a_page_of_large_rows_is_shorter_and_has_a_cursor() {
    let (mut cursor, mut seen, mut pages) = (None, Vec::new(), 0);
    loop {
        let page = Page { limit: Some(150), cursor: cursor.take(), q: None };
        let read = rows(200, 64 << 10);
        let read = move |slice: Slice| {
            let rows = read(slice.clone());
            async move { slice.read(stream::iter(rows.await?).map(Ok::<_, Fault>)).await }
        };
        let batches: Vec<NotificationBatch> =
            answer(Some(page), read).await.unwrap().into_inner().try_collect().await.unwrap();
        let size: usize = batches.iter().map(Message::encoded_len).sum();
        assert!(size <= PAGE_SIZE + SLICE_SIZE, "a page of {size} bytes");
        cursor = batches[0].next_cursor.clone();
        seen.extend(ids(batches));
        pages += 1;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, (1..=200).rev().collect::<Vec<_>>());
    assert!(pages > 2, "{pages} pages");
}

#[tokio::test]
async fn a_limit_out_of_bounds_is_rejected() {
    for limit in [-1, 0, LONGEST_PAGE + 1] {
        let page = Page { limit: Some(limit), ..Page::default() };
        assert!(answer::<NotificationBatch, _, _, _>(Some(page), rows(3, 1)).await.is_err());
    }
}

#[test]
fn wildcards_in_a_search_text_are_escaped() {
    assert_eq!(pattern(r"50%_of\it"), r"%50\%\_of\\it%");
}

#[tokio::test]
async fn parts_are_read_up_to_the_byte_budget() {
    let read = Arc::new(Mutex::new(0));
    let noted = read.clone();
    let parts = stream::iter(0..100).then(move |part| {
        *noted.lock().unwrap() += 1;
        let row = Notification { source: "x".repeat(SLICE_SIZE / 4), ..Default::default() };
        std::future::ready(Ok(vec![Notification { id: part.to_string(), ..row }]))
    });

    let rows = Slice::first().read_parts(parts).await.unwrap();

    assert_eq!((rows.items.len(), *read.lock().unwrap()), (4, 4));
    assert!(rows.is_cut());
}
