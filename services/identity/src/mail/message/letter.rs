//! The layout of mails, and the escaping of texts in them.

use secrecy::{ExposeSecret, SecretString};

/// A mail without its addresses.
pub(crate) struct Letter {
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) html: String,
}

/// Lays out a mail with a link: the reason for the mail, a call to open the link, the link, and
/// what to do otherwise.
pub(crate) fn with_link(
    subject: &str,
    reason: &str,
    call: &str,
    link: &SecretString,
    otherwise: &str,
) -> Letter {
    let link = link.expose_secret();
    let text = format!("Hello,\r\n\r\n{reason}\r\n\r\n{call}\r\n\r\n{link}\r\n\r\n{otherwise}\r\n");
    let [reason, call, link, otherwise] = [reason, call, link, otherwise].map(escape);
    let body = format!(
        "<p>{reason}</p>\r\n<p>{call}</p>\r\n\
         <p><a href=\"{link}\">{link}</a></p>\r\n<p>{otherwise}</p>"
    );
    Letter { subject: subject.to_owned(), text, html: page(subject, &body) }
}

/// Returns a page with a salutation and a body, which is HTML already.
pub(crate) fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\r\n\
         <html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\r\n\
         <body><p>Hello,</p>\r\n{body}</body></html>\r\n"
    )
}

/// Replaces control characters, such as line breaks, by spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Escapes a text for HTML, including attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
