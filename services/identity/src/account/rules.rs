//! What an email and a password may be.

use assay_proto::Fault;

/// The longest path that SMTP delivers to (RFC 5321), without its brackets.
const LONGEST_EMAIL: usize = 254;

/// Checks an email, without the space around it. Whether it exists, only a mail to it can tell.
pub(crate) fn email<'a>(field: &'static str, text: &'a str) -> Result<&'a str, Fault> {
    let email = text.trim();
    let parts = email.split_once('@').filter(|(name, host)| !name.is_empty() && !host.is_empty());
    let odd = |c: char| c.is_whitespace() || c.is_control();
    match parts {
        Some((_, host))
            if !host.contains('@') && !email.contains(odd) && email.len() <= LONGEST_EMAIL =>
        {
            Ok(email)
        }
        _ => Err(Fault::invalid(field, "must be an email address")),
    }
}

/// Checks a new password.
pub(crate) fn password(field: &'static str, text: &str) -> Result<(), Fault> {
    if (12..=256).contains(&text.chars().count()) {
        return Ok(());
    }
    Err(Fault::invalid(field, "must have 12 to 256 characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_has_a_name_and_a_host() {
        for good in ["a@b", " ada.lovelace+test@example.com\n", "jürgen@müller.example"] {
            assert_eq!(email("Email", good).unwrap(), good.trim());
        }
        let long = format!("{}@example.com", "x".repeat(250));
        for wrong in ["", "a", "@b", "a@", "a@b@c", "a b@c", "a\0@b", &long] {
            assert!(email("Email", wrong).is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn a_password_has_12_to_256_characters() {
        for (length, good) in [(0, false), (11, false), (12, true), (256, true), (257, false)] {
            assert_eq!(password("Password", &"ä".repeat(length)).is_ok(), good);
        }
    }
}
