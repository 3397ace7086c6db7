//! Colors.

use std::fmt;

/// A color: its red, green and blue parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Color(pub u8, pub u8, pub u8);

impl Default for Color {
    /// The color of links in the console.
    fn default() -> Self {
        Self(0x0b, 0x57, 0xb7)
    }
}

impl Color {
    /// Reads a color such as `#0b57b7`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits =
            text.strip_prefix('#').filter(|digits| digits.len() == 6 && digits.is_ascii())?;
        let part = |start| u8::from_str_radix(&digits[start..start + 2], 16).ok();
        // A sign is not a digit.
        let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hexadecimal.then_some(Self(part(0)?, part(2)?, part(4)?))
    }
}

impl fmt::Display for Color {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_color_has_six_hexadecimal_digits() {
        assert_eq!(Color::parse("#0B57b7"), Some(Color::default()));
        assert_eq!(Color::default().to_string(), "#0b57b7");
        for text in ["", "#fff", "red", "#0b57b", "#+b57b7", "#äää", "#0b57b7;", "url(x)"] {
            assert_eq!(Color::parse(text), None, "{text}");
        }
    }
}
