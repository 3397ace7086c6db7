//! Rules for email addresses and passwords.

use std::{borrow::Cow, str::FromStr};

use assay_proto::Fault;
use lettre::Address;

/// The longest path that SMTP delivers to (RFC 5321), without its brackets.
const LONGEST_EMAIL: usize = 254;

/// Characters that RFC 5321 allows in quotes, and that mail programs interpret in different ways.
const UNSAFE: [char; 11] = ['"', '(', ')', ',', ':', ';', '<', '>', '[', ']', '\\'];

/// Common passwords and their parts, in lower case, letters only.
const COMMON: [&str; 24] = [
    "password",
    "passwort",
    "passw",
    "letmein",
    "welcome",
    "willkommen",
    "qwerty",
    "qwertz",
    "qwertyuiop",
    "qwertzuiop",
    "asdfghjkl",
    "iloveyou",
    "administrator",
    "admin",
    "changeme",
    "trustno",
    "secret",
    "default",
    "princess",
    "sunshine",
    "football",
    "baseball",
    "superman",
    "assay",
];

/// Alphabets and rows of keyboards.
const SEQUENCES: [&str; 6] = [
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    "qwertyuiop",
    "qwertzuiop",
    "asdfghjkl",
    "1qaz2wsx3edc4rfv5tgb6yhn7ujm",
];

/// Checks the syntax of an email address, trims it, and converts its letters other than A to Z to lower case.
pub(crate) fn email<'a>(field: &'static str, text: &'a str) -> Result<Cow<'a, str>, Fault> {
    let email = folded(text.trim());
    let invalid = |c: char| c.is_whitespace() || c.is_control() || UNSAFE.contains(&c);
    let one_at = email.matches('@').count() == 1;
    if one_at
        && !email.contains(invalid)
        && email.len() <= LONGEST_EMAIL
        && Address::from_str(&email).is_ok()
    {
        return Ok(email);
    }
    Err(Fault::invalid(field, "must be a valid email address"))
}

/// Returns a text with letters other than A to Z in lower case.
///
/// PostgreSQL compares addresses without case by the rules of its locale. In most locales, some of these letters
/// are capitals of a to z, such as the Kelvin sign of k: the invitation of such a mailbox, which may have another
/// owner, would be accepted for the account with a to z. In lower case, they equal no others.
fn folded(text: &str) -> Cow<'_, str> {
    let is_folded = |c: char| c.is_ascii() || c.to_lowercase().eq([c]);
    if text.chars().all(is_folded) {
        return Cow::Borrowed(text);
    }
    let mut lower = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            lower.push(c);
        } else {
            lower.extend(c.to_lowercase());
        }
    }
    Cow::Owned(lower)
}

/// Checks a new password of the account with an email address.
pub(crate) fn password(field: &'static str, text: &str, email: &str) -> Result<(), Fault> {
    if !(12..=256).contains(&text.chars().count()) {
        return Err(Fault::invalid(field, "must have 12 to 256 characters"));
    }
    let text = text.to_lowercase();
    if is_common(&text) || is_derived_from(&text, &email.to_lowercase()) {
        return Err(Fault::invalid(
            field,
            "must not be easy to guess: avoid common words, sequences and the email address",
        ));
    }
    Ok(())
}

/// Returns whether a password, in lower case, is common or follows a pattern.
fn is_common(password: &str) -> bool {
    let mut characters: Vec<char> = password.chars().collect();
    characters.sort_unstable();
    characters.dedup();
    let letters: String = password.chars().filter(|c| c.is_alphabetic()).collect();
    let word = password.trim_matches(|c: char| !c.is_alphabetic());
    let unmasked: String = word.chars().map(letter_for).filter(|c| c.is_alphabetic()).collect();
    characters.len() < 5
        || is_repetition(password)
        || is_sequence(password)
        || [letters, unmasked].iter().any(|word| is_common_word(word))
}

/// Returns whether letters consist of common words only.
fn is_common_word(letters: &str) -> bool {
    letters.is_empty()
        || COMMON.iter().any(|word| {
            letters.strip_prefix(word).is_some_and(|rest| rest.is_empty() || is_common_word(rest))
        })
}

/// Returns the letter that a character often replaces.
fn letter_for(c: char) -> char {
    match c {
        '0' => 'o',
        '1' | '!' => 'i',
        '3' => 'e',
        '4' | '@' => 'a',
        '5' | '$' => 's',
        '7' => 't',
        c => c,
    }
}

/// Returns whether a password repeats a short part.
fn is_repetition(password: &str) -> bool {
    let characters: Vec<char> = password.chars().collect();
    (1..=characters.len() / 3).any(|length| {
        characters.iter().zip(characters.iter().skip(length)).all(|(one, other)| one == other)
    })
}

/// Returns whether most of a password follows an alphabet or a keyboard, in either direction.
fn is_sequence(password: &str) -> bool {
    let characters: Vec<char> = password.chars().collect();
    let follows = |pair: &[char]| {
        let pair: String = pair.iter().collect();
        let reversed: String = pair.chars().rev().collect();
        SEQUENCES.iter().any(|sequence| sequence.contains(&pair) || sequence.contains(&reversed))
    };
    let steps = characters.windows(2).filter(|pair| follows(pair)).count();
    steps * 4 >= characters.len().saturating_sub(1) * 3
}

/// Returns whether a password has fewer than 8 characters in addition to the email address or its
/// local part.
fn is_derived_from(password: &str, email: &str) -> bool {
    let name = email.split('@').next().unwrap_or_default();
    [email, name]
        .into_iter()
        .filter(|part| part.chars().count() >= 4)
        .any(|part| password.contains(part) && password.replace(part, "").chars().count() < 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_has_a_local_part_and_a_host() {
        for good in ["a@b", " ada.lovelace+test@example.com\n", "jürgen@müller.example"] {
            assert_eq!(email("Email", good).unwrap(), good.trim());
        }
        let long = format!("{}@example.com", "x".repeat(250));
        for wrong in ["", "a", "@b", "a@", "a@b@c", "a b@c", "a\0@b", &long] {
            assert!(email("Email", wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn an_email_is_not_taken_for_another_one_by_the_locale_of_the_database() {
        for (written, stored) in [
            ("Ada@Example.com", "Ada@Example.com"),
            ("JÜRGEN@MÜLLER.example", "JüRGEN@MüLLER.example"),
            // The Kelvin sign is a capital of k.
            ("\u{212a}ate@example.com", "kate@example.com"),
        ] {
            assert_eq!(email("Email", written).unwrap(), stored);
        }
        // In many locales, the capital i with a dot is a capital of i.
        assert_eq!(folded("v\u{130}ctim@example.com"), "vi\u{307}ctim@example.com");
    }

    #[test]
    fn an_email_cannot_inject_recipients_or_headers() {
        for wrong in [
            "a@b.example,c@d.example",
            "a@b.example;c@d.example",
            "a@b.example\r\nBcc: c@d.example",
            "a@b.example\nRCPT TO:<c@d.example>",
            "\"a\r\n\"@b.example",
            "\"a, c@d.example\"@b.example",
            "Ada <a@b.example>",
            "a@b.example>",
            "a@[127.0.0.1]",
            "a@b.example (c)",
            "a\\@b.example",
            "a@-b.example",
            "a@b..example",
        ] {
            assert!(email("Email", wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn a_password_has_12_to_256_characters() {
        let numbers: Vec<String> = (0..100_u32).map(|one| (one * one).to_string()).collect();
        let text = numbers.join(" tomes, ");
        for (length, good) in [(0, false), (11, false), (12, true), (256, true), (257, false)] {
            let password: String = text.chars().take(length).collect();
            assert_eq!(super::password("Password", &password, "a@b").is_ok(), good, "{length}");
        }
    }

    #[test]
    fn a_common_password_is_rejected() {
        for easy in [
            "aaaaaaaaaaaa",
            "abababababab",
            "abcabcabcabc",
            "123456789012",
            "abcdefghijkl",
            "lkjihgfedcba",
            "qwertyuiop12",
            "1qaz2wsx3edc",
            "password1234",
            "Password2024!",
            "P@ssw0rd!2026",
            "passwordpassword",
            "Welcome-2026!!",
            "administrator1",
            "ada.lovelace1815",
            "Ada.Lovelace@example.com",
        ] {
            assert!(password("Password", easy, "ada.lovelace@example.com").is_err(), "{easy}");
        }
        for good in [
            "correct horse battery staple",
            "a-secret-of-mine",
            "xk7-mfw2-qph9",
            "jump over lazy dogs",
            "ünïcödé pässwörd",
        ] {
            password("Password", good, "ada.lovelace@example.com").unwrap();
        }
    }
}
