//! Finds the end of a JSON value while its bytes arrive.

/// The state of a scanner of strings.
#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum StringState {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl StringState {
    /// Returns the state after another byte of a string.
    pub(super) fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Inside, b'"') => Self::Outside,
            (Self::Inside, b'\\') => Self::Escaped,
            _ => Self::Inside,
        }
    }
}

/// The state of a value that has begun.
#[derive(Clone, Copy, Default)]
pub(super) struct Scanner {
    string: StringState,
    /// Number of arrays and objects that are open.
    depth: usize,
}

impl Scanner {
    /// Begins a value with its first byte.
    pub(super) fn begin(byte: u8) -> Self {
        let string = if byte == b'"' { StringState::Inside } else { StringState::Outside };
        Self { string, depth: usize::from(matches!(byte, b'{' | b'[')) }
    }

    /// Returns whether this byte follows a complete number, `true`, `false` or `null`.
    pub(super) fn ends_before(&self, byte: u8) -> bool {
        let is_scalar = self.string == StringState::Outside && self.depth == 0;
        is_scalar && (byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}'))
    }

    /// Returns whether this byte completes a string, array or object.
    pub(super) fn ends_with(&mut self, byte: u8) -> bool {
        if self.string != StringState::Outside {
            self.string = self.string.after(byte);
            return self.string == StringState::Outside && self.depth == 0;
        }
        match byte {
            b'"' => self.string = StringState::Inside,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}
