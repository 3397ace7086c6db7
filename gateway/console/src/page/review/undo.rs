//! The form that takes a review back: beside its announcement, and beside the judgement of a test.

use maud::{Markup, html};

/// A form that takes a review of an execution back, and returns to a page.
pub(super) fn form(execution: &str, review: &str, next: &str) -> Markup {
    html! {
        form.undo method="post" action=(format!("/executions/{execution}/undo")) {
            input type="hidden" name="review" value=(review);
            input type="hidden" name="next" value=(next);
            button { "Undo" }
        }
    }
}
