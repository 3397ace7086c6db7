//! Links to the results of a branch or an environment of the latest executions, so that nobody has to know
//! their names.

use maud::{Markup, html};

use super::Filter;
use crate::{api::address, page::branch::Branch, record::ExecutionEntry, text::plain};

/// Maximum number of branches and of environments.
const VALUES: usize = 8;

/// Links to the branches and environments of executions, apart from the branch that is shown. `page` is the
/// path of the page.
pub(super) fn chips(
    page: &str,
    filter: &Filter,
    shown: Option<&str>,
    executions: &[ExecutionEntry],
) -> Markup {
    let branches = distinct(executions.iter().filter_map(|one| Some((one.branch.as_deref()?, ()))));
    let branches: Vec<_> = branches.into_iter().filter(|(name, ())| Some(*name) != shown).collect();
    let environments = distinct(executions.iter().filter_map(|one| {
        let id = one.environment_id.as_deref().filter(|id| !id.is_empty())?;
        Some((id, one.environment_name.as_deref().unwrap_or(id)))
    }));
    let of_branch =
        |name: &str| address(page, &Filter { branch: Branch::of(name), ..filter.clone() });
    let of_environment = |id: Option<&str>| {
        address(page, &Filter { environment: id.map(str::to_owned), ..filter.clone() })
    };
    html! {
        @if !branches.is_empty() {
            nav.chips aria-label="Branches" {
                @for (name, ()) in branches { a.chip href=(of_branch(name)) { bdi { (plain(name)) } } }
            }
        }
        @if environments.len() > 1 || filter.environment.is_some() {
            nav.chips aria-label="Environments" {
                @for (id, name) in environments {
                    @let is_shown = filter.environment.as_deref() == Some(id);
                    a.chip href=(of_environment(Some(id).filter(|_| !is_shown)))
                        aria-current=[is_shown.then_some("true")]
                    { bdi { (plain(name)) } }
                }
            }
        }
    }
}

/// Returns the first values of different keys.
fn distinct<'a, V>(all: impl Iterator<Item = (&'a str, V)>) -> Vec<(&'a str, V)> {
    let mut values = Vec::new();
    for (key, value) in all {
        if values.len() < VALUES && !values.iter().any(|(known, _)| *known == key) {
            values.push((key, value));
        }
    }
    values
}
