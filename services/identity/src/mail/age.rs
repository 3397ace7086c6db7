//! The metric of mails that wait.

use assay_work::Age;

use super::store::{MAIL, OWNER};

/// Returns the age of the oldest mail that is due and that no replica is sending.
pub(crate) fn age() -> Age {
    let is_due = MAIL.is_due(OWNER, "mail.id");
    Age {
        metric: "assay_mail_age_seconds",
        help: "Time since the oldest mail that waits to be sent was due.",
        label: None,
        due_since: format!(
            "select min(next_attempt_at) from mail where next_attempt_at <= now() and {is_due}"
        ),
    }
}
