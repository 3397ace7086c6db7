//! The effect of a rule on stored failures, found by deriving their causes with it.

use std::{cmp::Reverse, collections::BTreeMap};

use assay_database::begin;
use assay_fingerprint::Fingerprint;
use assay_ledger::{cause_rule::CauseRules, failure::text};
use assay_proto::{
    CustomerId, Fault, ProjectId,
    execution::{CauseRulePreview, JoinedCause, JoinedCauses},
};
use futures::TryStreamExt;
use sqlx::PgPool;

use super::{resolve::resolve, rules::Kind};

/// Maximum number of groups, and of causes in a group, in a response.
const MOST_GROUPS: usize = 100;
const MOST_CAUSES: usize = 20;

/// Returns what a rule would join in addition to those that the project has.
pub(super) async fn of(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    kind: Kind,
) -> Result<CauseRulePreview, Fault> {
    let mut tx = begin(db).await?;
    let (mut rules, rule) = resolve(&mut tx, customer, project, kind).await?;
    rules.push(rule);
    let rules = CauseRules::new(&rules)?;
    let (mut examined, mut groups) = (0, BTreeMap::<Vec<u8>, Vec<JoinedCause>>::new());
    let mut texts = text::frequent(&mut tx, customer, project);
    while let Some(text) = texts.try_next().await? {
        let fingerprint = Fingerprint::try_from(text.fingerprint.as_slice());
        let cause = JoinedCause {
            fingerprint: fingerprint.map_err(Fault::internal)?.to_string(),
            headline: text.headline.clone(),
            failures: text.failures,
        };
        examined += 1;
        groups.entry(text.fingerprint_by(&rules)?).or_default().push(cause);
    }
    let remaining = i32::try_from(groups.len()).unwrap_or(i32::MAX);
    // The causes of a group are in the order of the texts.
    let mut joined: Vec<_> = groups.into_values().filter(|causes| causes.len() > 1).collect();
    joined.sort_by_key(|causes| Reverse(causes.iter().map(|cause| cause.failures).sum::<i32>()));
    joined.truncate(MOST_GROUPS);
    let joined = joined.into_iter().map(|mut causes| {
        causes.truncate(MOST_CAUSES);
        JoinedCauses { causes }
    });
    let joined = joined.collect();
    Ok(CauseRulePreview { examined, remaining, joined })
}
