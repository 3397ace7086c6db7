//! The limit of durations.

/// Maximum plausible duration of an attempt or a step, in seconds: about thirty years. Sums, and times from start to
/// finish, have the same limit.
pub const LONGEST_DURATION: f64 = 1e9;
