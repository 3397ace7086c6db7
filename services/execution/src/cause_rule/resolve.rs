//! The causes that a new rule names.

use assay_fingerprint::Fingerprint;
use assay_ledger::{
    cause_rule::{Cause, CauseRules, Rule, store},
    failure::text,
};
use assay_proto::{CustomerId, Fault, ProjectId};
use assay_records::Check;
use sqlx::PgConnection;

use super::rules::Kind;

/// Maximum size of the lines of a cause that a rule keeps, in bytes.
const LARGEST: usize = 16 << 10;

/// Returns the rules of a project so far, and a new one with the lines of its causes. Fails if the project has no
/// failures with them, or if a cause would count as itself.
pub(super) async fn resolve(
    db: &mut PgConnection,
    customer: CustomerId,
    project: ProjectId,
    kind: Kind,
) -> Result<(Vec<Rule>, Rule), Fault> {
    let stored = store::stored(&mut *db, customer, &project.to_string()).await?;
    let (one, other) = match kind {
        Kind::Noise(pattern) => return Ok((stored, Rule::Noise(pattern))),
        Kind::Same(one, other) => (one, other),
    };
    let rules = CauseRules::new(&stored)?;
    if rules.root(other) == one {
        let problem = "must be another cause: this one counts as Fingerprint already";
        return Err(Fault::invalid("SameAs", problem));
    }
    let mut check = Check::default();
    let mut causes = Vec::new();
    for (field, fingerprint) in [("Fingerprint", one), ("SameAs", other)] {
        let found = match text::cause(&mut *db, customer, project, fingerprint, &rules).await? {
            None => of_rules(&stored, fingerprint),
            found => found,
        };
        match found {
            None => check.refuse(field, "must be of a failure of the project"),
            Some(cause) if cause.lines.iter().map(String::len).sum::<usize>() > LARGEST => {
                check.refuse(field, "has a message that is too long: use a pattern");
            }
            Some(cause) => causes.push(cause),
        }
    }
    check.done()?;
    match <[Cause; 2]>::try_from(causes) {
        Ok([one, other]) => Ok((stored, Rule::Same(one, other))),
        Err(_) => Err(Fault::internal("a rule has two causes")),
    }
}

/// Returns a cause that only failures have that count as it.
fn of_rules(rules: &[Rule], fingerprint: Fingerprint) -> Option<Cause> {
    let compiled = CauseRules::new(rules).ok()?;
    rules.iter().find_map(|rule| match rule {
        Rule::Same(_, cause) if compiled.of(cause) == fingerprint => Some(cause.clone()),
        _ => None,
    })
}
