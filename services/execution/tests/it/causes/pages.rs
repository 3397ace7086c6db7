//! Pages of causes between which tests are muted and are not any more, compared with a brute-force model.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

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

/// Number of causes, of those that lead the list, and of those on a page.
const CAUSES: usize = 64;
const LEADING: usize = 50;
const PAGE: i32 = 7;

/// The tests that are muted are those whose number has one of these remainders, another one with each page. So the numbers
/// of causes grow and shrink, and causes are listed that were not before.
const MUTED: [(usize, usize); 8] =
    [(5, 0), (3, 1), (7, 2), (2, 0), (5, 3), (3, 2), (2, 1), (11, 1)];

/// A cause: the number of its tests, and its fingerprint.
type Cause = (i32, String);

/// The word of a cause: digits, also hexadecimal ones, do not count.
fn word(cause: usize) -> String {
    let letter = |index: usize| char::from(b'p' + u8::try_from(index % 4).unwrap());
    format!("{}{}{}", letter(cause), letter(cause / 4), letter(cause / 16))
}

/// The cause of each test: causes have from one to ten tests.
fn tests() -> Vec<usize> {
    (0..CAUSES).flat_map(|cause| std::iter::repeat_n(cause, 1 + cause * 7 % 10)).collect()
}

async fn world_with_tests(tests: &[usize]) -> Result<(World, Execution)> {
    let world = World::new().await?;
    let of = |(nr, cause): (usize, &usize)| {
        failed(&format!("t{nr}"), &format!("cannot open {}", word(*cause)))
    };
    let results: Vec<Value> = tests.iter().enumerate().map(of).collect();
    let execution = run(&world, "main", json!(results)).await?;
    Ok((world, execution))
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

/// Mutes these tests, and no other ones.
async fn mute(world: &World, tests: &BTreeSet<usize>) -> Result<()> {
    let names: Vec<_> = tests.iter().map(|nr| format!("t{nr}")).collect();
    sqlx::query("update test_report set is_muted = test_case_identifier = any($1)")
        .bind(&names)
        .execute(&world.db)
        .await?;
    Ok(())
}

/// Counts the tests of each cause that are not muted, the most frequent causes first.
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
    causes.sort_by_key(|(count, fingerprint)| (Reverse(*count), fingerprint.clone()));
    causes
}

/// Returns the causes that follow those that were listed.
fn following(causes: Vec<Cause>, listed: &[Cause]) -> Vec<Cause> {
    let leading: BTreeSet<_> = listed.iter().take(LEADING).map(|cause| &cause.1).collect();
    let last = listed.get(LEADING..).and_then(<[Cause]>::last);
    let rest = causes.into_iter().filter(|cause| !leading.contains(&cause.1));
    let mut first: Vec<_> = rest.collect();
    let mut others = first.split_off(first.len().min(LEADING - leading.len()));
    others.retain(|cause| last.is_none_or(|last| cause.1 > last.1));
    others.sort_by(|one, other| one.1.cmp(&other.1));
    first.extend(others);
    first
}

#[tokio::test]
async fn no_cause_is_left_out_or_twice_if_numbers_change_between_two_pages() -> Result<()> {
    let tests = tests();
    let (world, execution) = world_with_tests(&tests).await?;
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

    let (mut muted, mut listed, mut cursor) = (BTreeSet::new(), Vec::<Cause>::new(), None);
    let mut always: BTreeSet<String> = fingerprints.values().cloned().collect();
    for round in 0.. {
        let present = counted(&tests, &muted, &fingerprints);
        let shown: BTreeSet<_> = present.iter().map(|cause| cause.1.clone()).collect();
        always.retain(|cause| shown.contains(cause));
        let (causes, next) = page(&world, &execution, cursor).await?;
        let causes: Vec<Cause> = causes.into_iter().map(|(cause, _)| cause).collect();
        let mut expected = following(present, &listed);
        expected.truncate(usize::try_from(PAGE)?);
        assert_eq!(causes, expected, "page {round}");
        listed.extend(causes);
        cursor = next;
        if cursor.is_none() {
            break;
        }
        let (divisor, remainder) = MUTED[round % MUTED.len()];
        muted = (0..tests.len()).filter(|nr| nr % divisor == remainder).collect();
        mute(&world, &muted).await?;
    }
    let distinct: BTreeSet<_> = listed.iter().map(|cause| cause.1.clone()).collect();
    assert_eq!(distinct.len(), listed.len(), "no cause is twice");
    assert!(always.len() > 40 && listed.len() > LEADING, "{} of {}", always.len(), listed.len());
    let left_out: Vec<_> = always.difference(&distinct).collect();
    assert!(left_out.is_empty(), "{left_out:?}");
    Ok(())
}

#[tokio::test]
async fn a_cause_that_grows_after_the_first_page_is_on_a_later_one() -> Result<()> {
    let tests = tests();
    let (world, execution) = world_with_tests(&tests).await?;
    // One of ten tests is not muted yet.
    let cause = 57;
    let first_test = tests.iter().position(|one| *one == cause).unwrap();
    let rare = "update test_report set is_muted = true where test_case_identifier <> all($1)
        and id in (select test_report_id from failure where headline like '%' || $2)";
    let grown = word(cause);
    let kept = vec![format!("t{first_test}")];
    sqlx::query(rare).bind(kept).bind(&grown).execute(&world.db).await?;
    let (first, next) = page(&world, &execution, None).await?;
    assert!(first.iter().all(|(_, headline)| !headline.ends_with(&grown)), "{first:?}");

    world.change("update test_report set is_muted = false").await?;
    let (mut cursor, mut count) = (next, 0);
    while cursor.is_some() {
        let (causes, next) = page(&world, &execution, cursor).await?;
        count += causes.iter().filter(|(_, headline)| headline.ends_with(&grown)).count();
        cursor = next;
    }
    assert_eq!(count, 1);
    Ok(())
}

#[tokio::test]
async fn other_texts_than_cursors_are_refused() -> Result<()> {
    let (world, execution) = world_with_tests(&[0]).await?;
    for wrong in ["", "7", "x-1", "0123456789abcdef-1", &"0".repeat(31)] {
        let refused = page(&world, &execution, Some(wrong.to_owned())).await.unwrap_err();
        assert_eq!(fields(&refused), ["cursor"], "{wrong}");
    }
    Ok(())
}
