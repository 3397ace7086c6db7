//! Delays between the attempts of a delivery.

use std::time::Duration;

/// Delay after each failed attempt, about a day in total.
const DELAYS: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(8),
    Duration::from_hours(8),
];

/// The longest of them.
pub(super) const LONGEST: Duration = DELAYS[DELAYS.len() - 1];

/// Returns the delay after this number of failed attempts, or `None` after the last one.
pub(crate) fn after(attempts: i32) -> Option<Duration> {
    let index = usize::try_from(attempts).ok()?.checked_sub(1)?;
    DELAYS.get(index).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_add_up_to_a_day() {
        let delays: Vec<_> = (1..).map_while(after).collect();
        assert!(delays.is_sorted());
        let day = Duration::from_hours(24);
        assert!(delays.iter().sum::<Duration>().abs_diff(day) < Duration::from_hours(1));
        assert_eq!(after(0), None);
    }
}
