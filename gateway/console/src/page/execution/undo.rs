//! Taking a review back, from its announcement or from the page of a test.

use axum::{
    Form,
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use uuid::Uuid;

use super::path;
use crate::{
    failure::Failure,
    session::{Next, Session},
};

/// The fields of the form.
#[derive(Deserialize)]
pub(super) struct Undo {
    review: Uuid,
    /// The page to return to.
    next: String,
}

/// Takes a review back. The page that follows says whether that was possible.
pub(super) async fn undo(
    Session { api, .. }: Session,
    Path(execution): Path<Uuid>,
    Form(Undo { review, next }): Form<Undo>,
) -> Result<Response, Failure> {
    let done = api.delete(&format!("{}/reviews/{review}", path(execution))).await;
    let is_undone = match done {
        Ok(()) => true,
        // Somebody has judged the tests since, or has taken the review back.
        Err(failure) if failure.is_not_found() => false,
        Err(failure) => failure.of_conflict().map(|_| false)?,
    };
    let next = Next::parse(&next);
    let separator = if next.as_str().contains('?') { '&' } else { '?' };
    let undone = format!("{}{separator}undone={is_undone}", next.as_str());
    Ok(Redirect::to(&undone).into_response())
}
