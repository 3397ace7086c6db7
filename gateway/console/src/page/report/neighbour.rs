//! The tests before and after one in the list that it was opened from.

use axum::{
    extract::{Path, Query},
    response::Redirect,
};
use uuid::Uuid;

use super::{
    head,
    view::{View, report},
};
use crate::{
    api::address,
    failure::Failure,
    page::{execution::order, paged::Paged},
    session::Session,
};

/// Opens the next test of the list, or the list after its last test.
pub(super) async fn next(
    session: Session,
    Path(id): Path<Uuid>,
    Query(view): Query<View>,
) -> Result<Redirect, Failure> {
    open(session, id, view, true).await
}

/// Opens the previous test of the list, or the list before its first test.
pub(super) async fn previous(
    session: Session,
    Path(id): Path<Uuid>,
    Query(view): Query<View>,
) -> Result<Redirect, Failure> {
    open(session, id, view, false).await
}

async fn open(
    Session { api, .. }: Session,
    id: Uuid,
    view: View,
    forward: bool,
) -> Result<Redirect, Failure> {
    let report = report(&api, id).await?;
    let execution = report.execution_id.parse().map_err(|_| Failure::internal())?;
    let from = view.from.clone().unwrap_or_else(|| format!("change={}", report.change));
    let query = Paged::parse(&from);
    let (ids, following) = order(&api, execution, &query).await?;
    let found = neighbour(&ids, &report.id, forward);
    let target = match (found, following.filter(|_| forward)) {
        (Some(id), _) => Some((id.clone(), from)),
        (None, Some(query)) => {
            let from = serde_urlencoded::to_string(&query).unwrap_or_default();
            let (ids, _) = order(&api, execution, &query).await?;
            ids.into_iter().next().map(|id| (id, from))
        }
        (None, None) => None,
    };
    let target = target.map(|(id, from)| address(&format!("/reports/{id}"), &[("from", from)]));
    Ok(Redirect::to(&target.unwrap_or_else(|| head::list(&report, &view))))
}

/// Returns the id beside another one.
fn neighbour<'a>(ids: &'a [String], id: &str, forward: bool) -> Option<&'a String> {
    let at = ids.iter().position(|other| other == id)?;
    let at = if forward { at.checked_add(1) } else { at.checked_sub(1) };
    ids.get(at?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_neighbour_is_the_one_beside_it_in_the_list() {
        let ids = ["a", "b", "c"].map(str::to_owned);
        for (id, forward, expected) in [
            ("a", true, Some("b")),
            ("b", false, Some("a")),
            ("a", false, None),
            ("c", true, None),
            ("x", true, None),
        ] {
            let found = neighbour(&ids, id, forward).map(String::as_str);
            assert_eq!(found, expected, "{id} {forward}");
        }
    }
}
