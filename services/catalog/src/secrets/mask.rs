//! The mask of secrets that the caller may not see.

use assay_proto::Variable;

/// The mask that is shown instead of a secret.
pub(crate) const MASK: &str = "********";

/// Returns variables with their secrets masked.
pub(crate) fn masked(variables: &[Variable]) -> Vec<Variable> {
    let mask = |variable: &Variable| {
        let is_secret = variable.is_secured && !variable.content.is_empty();
        let content = if is_secret { MASK.to_owned() } else { variable.content.clone() };
        Variable { content, ..variable.clone() }
    };
    variables.iter().map(mask).collect()
}
