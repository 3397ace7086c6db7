//! The executions that a backtest replays.

use assay_proto::{Fault, Timestamp, execution::BacktestInput};
use assay_records::Check;
use uuid::Uuid;

use crate::period::Period;

/// The executions of a test set to replay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selected {
    pub(super) period: Period,
    /// The execution before which to go on, if others were replayed before.
    pub(super) before: Option<Uuid>,
}

impl Selected {
    /// Parses and checks the period and the cursor of a request. `from` is the default of its field.
    pub(super) fn of(input: &BacktestInput, from: Timestamp) -> Result<Self, Fault> {
        let mut check = Check::default();
        let period = period(input.from.unwrap_or(from), input.to, &mut check);
        let cursor = input.cursor.as_deref().filter(|cursor| !cursor.is_empty());
        let before = cursor.and_then(|cursor| cursor.parse().ok());
        if before.is_none() && cursor.is_some() {
            check.refuse("Cursor", "must be the NextCursor of a backtest");
        }
        check.done()?;
        Ok(Self { period, before })
    }
}

/// Checks the period of a request.
pub(super) fn period(from: Timestamp, to: Option<Timestamp>, check: &mut Check) -> Period {
    let (Timestamp(from), until) = (from, to.map(|Timestamp(to)| to));
    if until.is_some_and(|until| until <= from) {
        check.refuse("To", "must be later than From, which is 90 days before now by default");
    }
    Period { from: Some(from), until }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(input: &BacktestInput) -> Vec<String> {
        match Selected::of(input, day(1)) {
            Err(Fault::Invalid(violations)) => violations.into_iter().map(|it| it.field).collect(),
            Err(fault) => panic!("{fault}"),
            Ok(_) => Vec::new(),
        }
    }

    fn day(day: u32) -> Timestamp {
        Timestamp(format!("2026-03-{day:02}T00:00:00Z").parse().unwrap())
    }

    #[test]
    fn a_period_ends_after_it_begins() {
        let between = |from: Option<u32>, to: Option<u32>| BacktestInput {
            from: from.map(day),
            to: to.map(day),
            ..BacktestInput::default()
        };
        assert_eq!(wrong(&BacktestInput::default()), [""; 0]);
        assert_eq!(wrong(&between(Some(3), Some(4))), [""; 0]);
        assert_eq!(wrong(&between(Some(4), Some(4))), ["To"]);
        assert_eq!(wrong(&between(None, Some(1))), ["To"], "it begins on the first day by default");
        let cursor =
            |text: &str| BacktestInput { cursor: Some(text.into()), ..between(None, None) };
        assert_eq!(wrong(&cursor("last")), ["Cursor"]);
        assert_eq!(wrong(&cursor("")), [""; 0]);
    }
}
