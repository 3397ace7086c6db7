//! Numbers as people read them.

/// Returns a number with separators between thousands.
pub(crate) fn number(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::from(if value < 0 { "\u{2212}" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with its noun in singular or plural.
pub(crate) fn counted(value: i64, noun: &str) -> String {
    let plural = if value == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (value, expected) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (20_000, "20,000"),
            (-1_234_567, "−1,234,567"),
        ] {
            assert_eq!(number(value), expected);
        }
        assert_eq!(counted(1, "test"), "1 test");
        assert_eq!(counted(2000, "test"), "2,000 tests");
    }
}
