//! Rules for live logs.

use std::time::Duration;

use assay_proto::{Fault, execution::LiveLogInput};
use assay_records::Check;

/// Maximum size of the text of one request, in bytes.
const LARGEST_TEXT: usize = 64 << 10;

/// Maximum size of a log, in bytes.
pub(super) const LARGEST_LOG: i64 = 8 << 20;

/// Maximum time that a request waits for more text, in seconds.
const LONGEST_WAIT: i32 = 30;

pub(super) fn valid(input: LiveLogInput) -> Result<LiveLogInput, Fault> {
    let mut check = Check::default();
    if input.text.len() > LARGEST_TEXT {
        check.refuse("Text", format!("must have at most {LARGEST_TEXT} bytes in UTF-8"));
    }
    if input.offset.is_some_and(|offset| offset < 0) {
        check.refuse("Offset", "must be 0 or more");
    }
    check.done().map(|()| input)
}

/// Returns the part of a text that a log of this size lacks.
pub(super) fn missing(input: &LiveLogInput, size: i64) -> Result<&[u8], Fault> {
    let text = input.text.as_bytes();
    let offset = input.offset.unwrap_or(size);
    let Ok(known) = usize::try_from(size - offset) else {
        let reason = format!("the log has {size} bytes: send the text from there");
        return Err(Fault::Conflict { code: "log_gap", reason });
    };
    let room = usize::try_from(LARGEST_LOG - size).unwrap_or_default();
    let new = text.get(known..).unwrap_or_default();
    Ok(&new[..new.len().min(room)])
}

pub(super) fn wait(seconds: Option<i32>) -> Result<Duration, Fault> {
    let seconds = seconds.unwrap_or_default();
    if !(0..=LONGEST_WAIT).contains(&seconds) {
        return Err(Fault::invalid("waitInSec", format!("must be 0 to {LONGEST_WAIT}")));
    }
    Ok(Duration::from_secs(seconds.unsigned_abs().into()))
}

/// Returns a piece of a log as text, without a character that is cut off at its end or its start. The
/// number of bytes at its start that are left out comes first, then that of the bytes of the text.
/// PostgreSQL and terminals stop at NUL, which is replaced.
pub(super) fn text(piece: &[u8]) -> (usize, usize, String) {
    let is_continuation = |byte: &&u8| (0x80..0xc0).contains(*byte);
    let left_out = piece.iter().take(3).take_while(is_continuation).count();
    let piece = &piece[left_out..];
    let complete = match std::str::from_utf8(piece) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => piece.len(),
    };
    let text = String::from_utf8_lossy(&piece[..complete]).replace('\0', "\u{fffd}");
    (left_out, complete, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(offset: Option<i64>, text: &str) -> LiveLogInput {
        LiveLogInput { text: text.to_owned(), offset }
    }

    #[test]
    fn repeated_text_is_appended_once_and_gaps_are_refused() {
        assert_eq!(missing(&input(None, "ab"), 7).unwrap(), b"ab");
        assert_eq!(missing(&input(Some(7), "ab"), 7).unwrap(), b"ab");
        assert_eq!(missing(&input(Some(6), "ab"), 7).unwrap(), b"b");
        assert_eq!(missing(&input(Some(2), "ab"), 7).unwrap(), b"");
        assert!(matches!(
            missing(&input(Some(8), "ab"), 7),
            Err(Fault::Conflict { code: "log_gap", .. })
        ));
    }

    #[test]
    fn a_log_has_a_maximum_size() {
        assert_eq!(missing(&input(None, "abc"), LARGEST_LOG - 2).unwrap(), b"ab");
        assert_eq!(missing(&input(None, "abc"), LARGEST_LOG).unwrap(), b"");
        let long = "x".repeat(LARGEST_TEXT + 1);
        assert!(valid(input(None, &long)).is_err() && valid(input(Some(-1), "")).is_err());
    }

    #[test]
    fn pieces_are_cut_between_characters() {
        let euro = "a€".as_bytes();
        assert_eq!(text(euro), (0, 4, "a€".to_owned()));
        assert_eq!(text(&euro[..3]), (0, 1, "a".to_owned()));
        assert_eq!(text(&euro[2..]), (2, 0, String::new()));
        assert_eq!(text(b"\xffz\0"), (0, 3, "\u{fffd}z\u{fffd}".to_owned()));
    }
}
