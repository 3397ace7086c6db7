//! Work in the background that is attempted until it is done or given up.
//!
//! An attempt is counted before the work begins, with [`Work::begin`], in a transaction of its own. So work
//! that no program survives is given up, although nobody records its failure. Work that is given up is a
//! dead letter: its record stays until an operator retries or drops it, with a [`WorkCommand`], and a metric
//! counts it.
//!
//! A queue that counts attempts in its own rows, for instance because it takes many at a time, declares
//! how its dead letters are listed, retried and dropped ([`Queue::Own`]).
//!
//! Work that one replica does at a time is done a piece after the other ([`Work::do_all`]), in turns of
//! customers.
//!
//! Work that waits for servers outside Assay is claimed in turns ([`InTurns`]), and measured by the age of
//! what is due the longest ([`Age`]).

mod age;
mod attempt;
mod command;
mod letters;
mod one_replica;
mod turns;
mod watch;

use std::time::Duration;

use sqlx::migrate::Migrator;

pub use self::{
    age::Age,
    attempt::{Attempt, announce, causes, shortened},
    command::{OfService, WorkCommand},
    letters::DeadLetter,
    one_replica::Waiting,
    turns::{InTurns, Turns},
    watch::watch,
};

/// The migrations of this crate.
pub static TABLES: Migrator = sqlx::migrate!();

/// Number of times that work is begun without coming to an end before it is given up. A program can
/// also end for another reason.
pub const MOST_TAKEN: i32 = 5;

/// The reason of a dead letter whose attempts did not come to an end.
pub const NO_END: &str = "no attempt came to an end: the programs that made them have ended before";

/// A kind of work.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The name of the kind, such as `mail`, in metrics and in ids of dead letters.
    pub kind: &'static str,
    pub queue: Queue,
}

/// The table in which the attempts of a kind of work are counted.
#[derive(Clone, Copy, Debug)]
pub enum Queue {
    /// In the table `unfinished_work`.
    Unfinished {
        patience: Patience,
        /// The condition that the work `w` is still to be done, such as `exists (select from mail m
        /// where m.id = w.id)`.
        pending: &'static str,
        /// The statement that drops the work of the customers `$1` with the ids `$2`, two arrays of the
        /// same length. Empty if nothing else refers to it.
        drop: &'static str,
    },
    /// In rows of its own.
    Own {
        /// A query of the dead letters, with the columns `id` (`text`), `customer_id`, `about` (what
        /// the work is done for), `attempts` (`int`), `reason` (`text`) and `given_up_at`.
        given_up: &'static str,
        /// The statements that retry and drop the dead letters whose ids are in `$1`, a `text[]`, or all
        /// if it is null.
        retry: &'static str,
        drop: &'static str,
    },
}

/// How long failed work is attempted again.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The pause after the first failure. It doubles with each further one.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// Number of failures after which the work is given up. Failures of the database do not count.
    pub failures: i32,
}

impl Patience {
    /// Returns the patience for purges: about ten hours after a failure that stays.
    pub const fn of_purges(first: Duration) -> Self {
        Self { first, longest: Duration::from_hours(1), failures: 20 }
    }

    /// Returns the patience for what is derived after an execution: about an hour.
    pub const fn of_derivations() -> Self {
        let (first, longest) = (Duration::from_secs(1), Duration::from_mins(5));
        Self { first, longest, failures: 20 }
    }

    /// Returns the pause after so many failures.
    fn pause(self, failures: i32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.unsigned_abs().saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let [first, longest] = [1, 300].map(Duration::from_secs);
        let patience = Patience { first, longest, failures: 20 };
        let pauses = [1, 2, 3, 9, 10, 2000].map(|failures| patience.pause(failures).as_secs());
        assert_eq!(pauses, [1, 2, 4, 256, 300, 300]);
    }
}
