//! Texts for people: untrusted ones made safe, numbers, durations and times.

mod ansi;
mod day;
mod duration;
mod excerpt;
mod link;
mod number;
mod plain;
mod time;

pub use self::duration::{duration, duration_if_known, taken};
pub(crate) use self::{
    ansi::ansi,
    day::{end_of_day, until, zoned_day},
    excerpt::{Allowance, beginning},
    link::{Link, link, link_to_ticket},
    number::{counted, number},
    plain::{clean, plain},
    time::{exact_time, long_time, short_time, time_before, time_since, tooltip_time},
};
