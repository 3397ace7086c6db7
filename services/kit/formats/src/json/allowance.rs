//! The memory that lists of one test may still take.
//!
//! Each list has a maximum length of its own, but lists within lists multiply: steps within steps within
//! steps. So all lists of a test share one allowance. Parsers of elements have no access to their document,
//! so the allowance belongs to the thread, which reads one document at a time.

use std::cell::Cell;

/// Maximum memory of the elements of all lists of a test, or of what else is parsed as a whole, in
/// bytes.
const MOST: usize = 24 << 20;

/// Memory that an element takes beside itself, such as a short text, in bytes.
const CONTENT: usize = 64;

thread_local! {
    static LEFT: Cell<usize> = const { Cell::new(MOST) };
}

/// Begins another test.
pub(crate) fn renew() {
    LEFT.set(MOST);
}

/// Takes the memory of an element. Returns whether it may be kept.
pub(super) fn take<T>() -> bool {
    let left = LEFT.get().checked_sub(size_of::<T>() + CONTENT);
    LEFT.set(left.unwrap_or_default());
    left.is_some()
}
