//! Requests that a client sends again because it received no answer.
//!
//! New results can be equal to earlier ones, such as the second failure of a test that was repeated. So a
//! request repeats another one only if it follows soon, and nothing was reported about its test cases in
//! between.

use std::collections::HashMap;

use assay_digest::hex;
use assay_proto::{CustomerId, ExecutionId, Fault};
use sqlx::PgTransaction;

use super::{
    attempts,
    body::AttemptOf,
    number::Kind,
    store::{self, Record},
};

/// Maximum time from a request until it is repeated, in seconds. Clients wait up to half a minute for an
/// answer.
const SOON: f64 = 60.0;

/// Size of the digest of a request, in bytes. Behind it is the number of equal requests before.
const DIGEST: usize = 32;

/// Returns the identity of a request with these results in a locked execution: that of the request that
/// it repeats, or a new one. `cases` has the identifiers of the test cases of the results.
pub(super) async fn identity(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    digest: &[u8],
    cases: &[&str],
) -> Result<Vec<u8>, Fault> {
    let Some((last, is_recent)) = last_equal(tx, customer, execution, digest).await? else {
        return Ok(digest.to_vec());
    };
    if is_recent && is_latest(tx, customer, execution, &last, cases).await? {
        return Ok(last);
    }
    let count = last.get(DIGEST..).and_then(|count| count.try_into().ok());
    let count = count.map_or(1, |count| u32::from_be_bytes(count).saturating_add(1));
    Ok([digest, &count.to_be_bytes()].concat())
}

/// Returns the identity of the last equal request, and whether it was received a short time ago.
async fn last_equal(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    digest: &[u8],
) -> Result<Option<(Vec<u8>, bool)>, Fault> {
    let last = sqlx::query_as(
        "select digest, received_at > now() - make_interval(secs => $4) from upload
         where customer_id = $1 and execution_id = $2 and digest >= $3
           and digest <= $3 || '\\xffffffff'::bytea
         order by digest desc limit 1",
    );
    let last = last.bind(customer).bind(execution).bind(digest).bind(SOON);
    Ok(last.fetch_optional(&mut **tx).await?)
}

/// Returns whether the results of a request are still the last ones of their test cases.
async fn is_latest(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    identity: &[u8],
    cases: &[&str],
) -> Result<bool, Fault> {
    let last = attempts::last_attempts(tx, customer, execution, cases).await?;
    let record = |key| Record { scope: execution.0, key, ..Record::default() };
    let records: Vec<Record> = keys(identity, cases.len()).into_iter().map(record).collect();
    let sought: Vec<&Record> = records.iter().collect();
    let mut stored = store::of_keys(tx, customer, Kind::Result, &sought, true).await?;
    // The last result of each test case in the request is its last attempt.
    let mut of_cases = HashMap::<&str, AttemptOf>::new();
    for (case, Record { scope, key, .. }) in cases.iter().zip(records) {
        let Some(result) = stored.remove(&(scope, key)) else { return Ok(false) };
        of_cases.insert(case, serde_json::from_str(&result.details).map_err(Fault::internal)?);
    }
    Ok(of_cases.iter().all(|(case, of)| last.get(*case) == Some(of)))
}

/// Returns the keys of the results of a request, which are the same when it is repeated.
pub(super) fn keys(identity: &[u8], results: usize) -> Vec<String> {
    let (digest, count) = identity.split_at(DIGEST.min(identity.len()));
    let request = hex(&digest[..16.min(digest.len())]) + &hex(count);
    (0..results).map(|index| format!("{request}/{index}")).collect()
}
