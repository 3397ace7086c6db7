//! What mails say, as plain text and as HTML.

mod execution_ended;

pub(super) use self::execution_ended::execution_ended;

use secrecy::{ExposeSecret, SecretString};

/// A mail without its addresses.
pub(super) struct Letter {
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: String,
}

/// To the owner of a mailbox that a customer has invited.
pub(super) fn invitation(customer: &str, link: &SecretString) -> Letter {
    let customer = one_line(customer);
    letter(
        &format!("Welcome to Assay at {customer}"),
        &format!(
            "{customer} has made you a user of Assay, where tests and their results are kept."
        ),
        "Accept here, within seven days; without an account yet, you choose its password there:",
        link,
        "If you did not expect this mail, you need not do anything: without you nothing happens.",
    )
}

/// To a user whose place another mailbox is invited to take.
pub(super) fn email_change(customer: &str) -> Letter {
    let customer = one_line(customer);
    let subject = format!("Your address for Assay at {customer}");
    let why = format!(
        "{customer} wants to reach you at another address. When the owner of that address has \
         accepted, you can no longer log in to {customer} with this one: its password, sessions and \
         API tokens end."
    );
    let else_ = format!("If this is not right, ask those who manage the users of {customer}.");
    let text = format!("Hello,\r\n\r\n{why}\r\n\r\n{else_}\r\n");
    let html = page(&subject, &format!("<p>{}</p>\r\n<p>{}</p>", escaped(&why), escaped(&else_)));
    Letter { subject, text, html }
}

/// To somebody who has forgotten their password.
pub(super) fn password_reset(link: &SecretString) -> Letter {
    letter(
        "Your new password for Assay",
        "Somebody, probably you, wants to set a new password for your account at Assay.",
        "Choose it here, within an hour:",
        link,
        "If it was not you, you need not do anything: your password is what it was.",
    )
}

fn letter(subject: &str, why: &str, ask: &str, link: &SecretString, else_: &str) -> Letter {
    let link = link.expose_secret();
    let text = format!("Hello,\r\n\r\n{why}\r\n\r\n{ask}\r\n\r\n{link}\r\n\r\n{else_}\r\n");
    let [why, ask, link, else_] = [why, ask, link, else_].map(escaped);
    let html = format!(
        "<p>{why}</p>\r\n<p>{ask}</p>\r\n\
         <p><a href=\"{link}\">{link}</a></p>\r\n<p>{else_}</p>"
    );
    Letter { subject: subject.to_owned(), text, html: page(subject, &html) }
}

/// A page that greets; its body is HTML already.
fn page(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\r\n\
         <html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\r\n\
         <body><p>Hello,</p>\r\n{body}</body></html>\r\n"
    )
}

/// The text with nothing in it that could begin another line.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The text as it has to be spelt in HTML, in an attribute too.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_become_part_of_a_page_or_begin_a_header() {
        let name = "<script>alert(\"1\")</script>\r\nBcc: eve@example.com";
        let letter = invitation(name, &"https://assay.example/#token=x".into());
        assert!(!letter.html.contains("<script>"), "{}", letter.html);
        assert!(!letter.subject.contains(['\r', '\n']), "{}", letter.subject);
        assert!(letter.text.contains("https://assay.example/#token=x"));
        assert!(letter.html.contains("href=\"https://assay.example/#token=x\""));
    }
}
