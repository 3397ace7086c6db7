//! Texts of mails, as plain text and as HTML.

mod execution_ended;
mod letter;

use secrecy::SecretString;

use self::letter::{escape, one_line, page, with_link};
pub(crate) use self::{execution_ended::execution_ended, letter::Letter};

/// Writes to the owner of a mailbox that a customer has invited.
pub(crate) fn invitation(customer: &str, link: &SecretString) -> Letter {
    let customer = one_line(customer);
    with_link(
        &format!("You have been invited to {customer} on Assay"),
        &format!(
            "{customer} has invited you to Assay, a service for managing tests and their results."
        ),
        "To accept the invitation, open this link within seven days. If you do not have a password \
         yet, you can choose one there:",
        link,
        "If you did not expect this invitation, you can ignore this mail.",
    )
}

/// Writes to a user whose mailbox is about to be replaced by another one.
pub(crate) fn email_change(customer: &str) -> Letter {
    let customer = one_line(customer);
    let subject = format!("Your email address at {customer} on Assay is about to change");
    let reason = format!(
        "{customer} has requested to change the email address of your user on Assay. As soon as \
         the owner of the new address accepts, you can no longer log in to {customer} with this \
         address, and its password, sessions and API tokens stop working."
    );
    let otherwise = format!(
        "If you did not expect this change, please contact the user administrators of {customer}."
    );
    let text = format!("Hello,\r\n\r\n{reason}\r\n\r\n{otherwise}\r\n");
    let body = format!("<p>{}</p>\r\n<p>{}</p>", escape(&reason), escape(&otherwise));
    let html = page(&subject, &body);
    Letter { subject, text, html }
}

/// Writes to a user who has requested a new password.
pub(crate) fn password_reset(link: &SecretString) -> Letter {
    with_link(
        "Reset your Assay password",
        "We received a request to reset the password of your Assay account.",
        "To choose a new password, open this link within one hour:",
        link,
        "If you did not request a new password, you can ignore this mail. Your password has not \
         been changed.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_in_html_and_kept_out_of_headers() {
        let name = "<script>alert(\"1\")</script>\r\nBcc: eve@example.com";
        let letter = invitation(name, &"https://assay.example/#token=x".into());
        assert!(!letter.html.contains("<script>"), "{}", letter.html);
        assert!(!letter.subject.contains(['\r', '\n']), "{}", letter.subject);
        assert!(letter.text.contains("https://assay.example/#token=x"));
        assert!(letter.html.contains("href=\"https://assay.example/#token=x\""));
    }
}
