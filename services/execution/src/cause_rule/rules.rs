//! Rules for new cause rules.

use assay_fingerprint::{Fingerprint, Noise};
use assay_proto::{Fault, execution::CauseRuleInput};
use assay_records::Check;

/// The effect of a new rule, as its request states it.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Text that matches a pattern does not count.
    Noise(String),
    /// The first cause counts as the second one.
    Same(Fingerprint, Fingerprint),
}

/// Checks a new rule on its own.
pub(super) fn check(input: &CauseRuleInput) -> Result<Kind, Fault> {
    let mut check = Check::default();
    check.texts(input);
    let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let (pattern, one, other) =
        (given(&input.pattern), given(&input.fingerprint), given(&input.same_as));
    let kind = match (pattern, one, other) {
        (Some(pattern), None, None) => {
            if let Err(problem) = Noise::new([pattern.as_str()]) {
                check.refuse("Pattern", problem.to_string());
            }
            Kind::Noise(pattern)
        }
        (None, Some(one), Some(other)) => Kind::Same(
            fingerprint("Fingerprint", &one, &mut check),
            fingerprint("SameAs", &other, &mut check),
        ),
        _ => {
            check.refuse("Pattern", "must be given, or Fingerprint and SameAs, and not both");
            Kind::Noise(String::new())
        }
    };
    check.done()?;
    Ok(kind)
}

fn fingerprint(field: &str, text: &str, check: &mut Check) -> Fingerprint {
    text.parse().unwrap_or_else(|_| {
        check.refuse(field, "must be the fingerprint of a failure");
        Fingerprint::from([0; 16])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_a_pattern_or_a_pair() {
        let fingerprint = || Some("0".repeat(32));
        let input = CauseRuleInput::default();
        let fields = |input: &CauseRuleInput| match check(input) {
            Ok(_) => Vec::new(),
            Err(Fault::Invalid(problems)) => {
                problems.iter().map(|problem| problem.field.clone()).collect()
            }
            Err(fault) => panic!("{fault}"),
        };
        let pattern = || Some("shard-[a-z]+".to_owned());
        assert!(fields(&CauseRuleInput { pattern: pattern(), ..input.clone() }).is_empty());
        let pair =
            CauseRuleInput { fingerprint: fingerprint(), same_as: fingerprint(), ..input.clone() };
        assert!(fields(&pair).is_empty());
        for (field, wrong) in [
            ("Pattern", input.clone()),
            ("Pattern", CauseRuleInput { pattern: pattern(), ..pair.clone() }),
            ("Pattern", CauseRuleInput { same_as: None, ..pair.clone() }),
            ("Pattern", CauseRuleInput { pattern: Some("x*".to_owned()), ..input.clone() }),
            ("SameAs", CauseRuleInput { same_as: Some("x".to_owned()), ..pair.clone() }),
        ] {
            assert_eq!(fields(&wrong), [field]);
        }
    }
}
