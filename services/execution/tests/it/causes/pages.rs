//! Pages of causes between which tests are muted, compared with a brute-force model.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use assay_proto::{
    Batch, Page,
    execution::{Execution, ListFailuresRequest},
};
use futures::TryStreamExt;
use serde_json::{Value, json};
use tonic::Status;

use crate::{
    changes::{failed, run},
    world::{World, fields},
};

/// Number of causes, and of those on a page.
const CAUSES: usize = 24;
const PAGE: i32 = 3;

/// Tests that are muted are those whose number has one of these remainders, one after the other with each page.
const MUTED: [(usize, usize); 8] =
    [(5, 0), (3, 1), (7, 2), (2, 0), (5, 3), (3, 2), (7, 6), (11, 1)];

/// A cause: the number of its tests, and its fingerprint, in the order of the list.
type Cause = (i32, String);

/// The word of a cause: digits, also hexadecimal ones, do not count.
fn word(cause: usize) -> String {
    let letter = |index: usize| char::from(b'p' + u8::try_from(index % 5).unwrap());
    format!("{}{}", letter(cause), letter(cause / 5))
}

/// The cause of each test: causes have from one to ten tests.
fn tests() -> Vec<usize> {
    (0..CAUSES).flat_map(|cause| std::iter::repeat_n(cause, 1 + cause * 7 % 10)).collect()
}

/// Returns a page of the causes that are not muted, with the cursor of the next one.
async fn page(
    world: &World,
    execution: &Execution,
    cursor: Option<String>,
) -> Result<(Vec<(Cause, String)>, Option<String>), Status> {
    let request = ListFailuresRequest {
        execution_id: execution.id.clone(),
        muted: Some(false),
        page: Some(Page { limit: Some(PAGE), cursor, q: None }),
        ..Default::default()
    };
    let batches = world.failures().list_failures(world.user.call(request)).await?.into_inner();
    let batches: Vec<_> = batches.try_collect().await?;
    let next = batches.iter().find_map(|batch| batch.next_cursor.clone());
    let causes = batches.iter().flat_map(|batch| batch.parse().unwrap());
    let causes = causes.map(|cause| ((cause.count, cause.fingerprint), cause.headline));
    Ok((causes.collect(), next))
}

/// Mutes tests.
async fn mute(world: &World, tests: &BTreeSet<usize>) -> Result<()> {
    let names: Vec<_> = tests.iter().map(|nr| format!("t{nr}")).collect();
    sqlx::query("update test_report set is_muted = true where test_case_identifier = any($1)")
        .bind(&names)
        .execute(&world.db)
        .await?;
    Ok(())
}

/// Counts the tests of each cause that are not muted, and orders the causes as the list does.
fn counted(
    tests: &[usize],
    muted: &BTreeSet<usize>,
    fingerprints: &BTreeMap<usize, String>,
) -> Vec<Cause> {
    let mut counts = BTreeMap::<usize, i32>::new();
    for (nr, cause) in tests.iter().enumerate() {
        if !muted.contains(&nr) {
            *counts.entry(*cause).or_default() += 1;
        }
    }
    let mut causes: Vec<_> =
        counts.iter().map(|(cause, count)| (*count, fingerprints[cause].clone())).collect();
    causes.sort_by(|one, other| other.cmp(one));
    causes
}

#[tokio::test]
async fn no_cause_is_left_out_if_tests_are_muted_between_two_pages() -> Result<()> {
    let world = World::new().await?;
    let tests = tests();
    let of = |(nr, cause): (usize, &usize)| {
        failed(&format!("t{nr}"), &format!("cannot open {}", word(*cause)))
    };
    let results: Vec<Value> = tests.iter().enumerate().map(of).collect();
    let execution = run(&world, "main", json!(results)).await?;
    let (mut fingerprints, mut cursor) = (BTreeMap::new(), None);
    loop {
        let (causes, next) = page(&world, &execution, cursor).await?;
        for ((_, fingerprint), headline) in causes {
            let cause = (0..CAUSES).find(|cause| headline.ends_with(&word(*cause))).unwrap();
            fingerprints.insert(cause, fingerprint);
        }
        cursor = next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(fingerprints.len(), CAUSES);

    let (mut muted, mut listed) = (BTreeSet::new(), BTreeSet::new());
    let (mut cursor, mut last): (_, Option<Cause>) = (None, None);
    for round in 0.. {
        let (causes, next) = page(&world, &execution, cursor).await?;
        let causes: Vec<Cause> = causes.into_iter().map(|(cause, _)| cause).collect();
        let rest = counted(&tests, &muted, &fingerprints).into_iter();
        let rest = rest.filter(|cause| last.as_ref().is_none_or(|last| cause < last));
        let expected: Vec<_> = rest.take(usize::try_from(PAGE)?).collect();
        assert_eq!(causes, expected, "page {round}");
        listed.extend(causes.iter().map(|(_, fingerprint)| fingerprint.clone()));
        cursor = next;
        if cursor.is_none() {
            break;
        }
        last = causes.last().cloned();
        let (divisor, remainder) = MUTED[round % MUTED.len()];
        muted.extend((0..tests.len()).filter(|nr| nr % divisor == remainder));
        mute(&world, &muted).await?;
    }
    let left = counted(&tests, &muted, &fingerprints);
    assert!((4..CAUSES).contains(&left.len()), "{} causes are left", left.len());
    let left_out: Vec<_> = left.iter().filter(|cause| !listed.contains(&cause.1)).collect();
    assert!(left_out.is_empty(), "{left_out:?}");

    for wrong in ["", "7", "x-1", &left[0].1, &format!("x-{}", left[0].1)] {
        let refused = page(&world, &execution, Some(wrong.to_owned())).await.unwrap_err();
        assert_eq!(fields(&refused), ["cursor"], "{wrong}");
    }
    Ok(())
}
