//! When a delivery is tried again, and what is thought of a receiver.

use std::time::Duration;

use super::post::Outcome;

/// The pauses between the attempts of a delivery, of about a day altogether.
const PAUSES: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_mins(1),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(8),
    Duration::from_hours(8),
];

/// How long a delivery waits that has failed so often; none where it is given up.
pub(super) fn pause(attempts: i32) -> Option<Duration> {
    let before = usize::try_from(attempts).ok()?.checked_sub(1)?;
    PAUSES.get(before).copied()
}

/// How a receiver has done in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// It has taken something.
    Well,
    /// It has taken nothing.
    Failing,
    /// It has said that it wants nothing any more.
    Gone,
}

impl Health {
    pub(super) fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        let mut health = Self::Failing;
        for outcome in outcomes {
            if outcome.is_gone() {
                return Self::Gone;
            }
            if outcome.problem.is_none() {
                health = Self::Well;
            }
        }
        health
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_add_up_to_a_day() {
        let pauses: Vec<_> = (1..).map_while(pause).collect();
        assert!(pauses.is_sorted());
        let day = Duration::from_hours(24);
        assert!(pauses.iter().sum::<Duration>().abs_diff(day) < Duration::from_hours(1));
        assert_eq!(pause(0), None);
    }

    #[test]
    fn one_that_is_taken_makes_up_for_others_but_not_for_a_farewell() {
        let of = |statuses: &[u16]| {
            let outcomes: Vec<_> =
                statuses.iter().map(|&status| Outcome::answered(status)).collect();
            Health::of(&outcomes)
        };
        assert_eq!(of(&[500, 204, 404]), Health::Well);
        assert_eq!(of(&[500, 302]), Health::Failing);
        assert_eq!(of(&[200, 410]), Health::Gone);
    }
}
