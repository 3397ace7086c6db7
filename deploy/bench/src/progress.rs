//! Messages to users while the measurement runs.

use std::fmt;

/// Prints a line that shows how far the measurement is.
pub(crate) fn progress(line: fmt::Arguments<'_>) {
    eprintln!("{line}");
}
