//! The effect of a rule on stored failures, found by deriving the causes of stored failures with it.

use std::collections::BTreeMap;

use assay_fingerprint::Fingerprint;
use assay_ledger::{
    cause_rule::{CauseRules, store},
    failure::text::{Text, texts},
};
use assay_proto::{
    CustomerId, Fault, ProjectId,
    execution::{CauseRulePreview, JoinedCause, JoinedCauses},
};
use sqlx::PgPool;

/// Maximum number of groups, and of causes in a group, in a response.
const MOST_GROUPS: usize = 100;
const MOST_CAUSES: usize = 20;

/// Returns what a rule would join in addition to those that the project has.
pub(super) async fn of(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    kind: &store::Kind,
) -> Result<CauseRulePreview, Fault> {
    let current = store::of_project(db, customer, &project.to_string()).await?;
    let rules = with(current, kind)?;
    let texts = texts(db, customer, project).await?;
    let examined = texts.len();
    let mut groups: BTreeMap<Vec<u8>, Vec<JoinedCause>> = BTreeMap::new();
    for text in texts {
        let derived = text.fingerprint_by(&rules)?;
        groups.entry(derived).or_default().push(cause(text)?);
    }
    let remaining = groups.len();
    let mut joined: Vec<_> = groups.into_values().filter(|causes| causes.len() > 1).collect();
    for causes in &mut joined {
        causes.sort_by(|one, other| {
            (other.failures, &one.fingerprint).cmp(&(one.failures, &other.fingerprint))
        });
        causes.truncate(MOST_CAUSES);
    }
    joined.sort_by_key(|causes| {
        std::cmp::Reverse(causes.iter().map(|one| one.failures).sum::<i32>())
    });
    joined.truncate(MOST_GROUPS);
    let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
    Ok(CauseRulePreview {
        examined: count(examined),
        remaining: count(remaining),
        joined: joined.into_iter().map(|causes| JoinedCauses { causes }).collect(),
    })
}

/// Returns the rules of a project with a further one.
fn with(mut rules: CauseRules, kind: &store::Kind) -> Result<CauseRules, Fault> {
    match kind {
        store::Kind::Noise(pattern) => {
            rules
                .add_pattern(pattern)
                .map_err(|problem| Fault::invalid("Pattern", problem.to_string()))?;
        }
        store::Kind::Same(one, other) => {
            super::rules::check_circle(&rules, *one, *other)?;
            rules.add_same(*one, *other);
        }
    }
    Ok(rules)
}

fn cause(text: Text) -> Result<JoinedCause, Fault> {
    let fingerprint =
        Fingerprint::try_from(text.fingerprint.as_slice()).map_err(Fault::internal)?;
    Ok(JoinedCause {
        fingerprint: fingerprint.to_string(),
        headline: text.headline,
        failures: text.failures,
    })
}
