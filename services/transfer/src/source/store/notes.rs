//! Notes for users on a conversion.

use std::collections::BTreeMap;

/// Counts what is not imported as it is.
#[derive(Default)]
pub(super) struct Notes {
    /// Numbers of results, by statuses that only the other tool knows.
    unknown: BTreeMap<String, u64>,
    /// Numbers of runs that are left out, by the reason.
    left_out: BTreeMap<&'static str, u64>,
    /// Number of runs with times in the future.
    in_future: u64,
}

impl Notes {
    pub(super) fn unknown(&mut self, status: &str) {
        *self.unknown.entry(status.to_owned()).or_default() += 1;
    }

    pub(super) fn leave_out(&mut self, reason: &'static str) {
        *self.left_out.entry(reason).or_default() += 1;
    }

    pub(super) fn in_future(&mut self) {
        self.in_future += 1;
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        let unknown = self.unknown.into_iter().map(|(status, count)| {
            format!("{count} results with the status {status:?} are imported as Canceled")
        });
        let left_out = self.left_out.into_iter();
        let left_out =
            left_out.map(|(reason, count)| format!("left out: {count} runs that {reason}"));
        let in_future = (self.in_future > 0).then(|| {
            let count = self.in_future;
            format!("{count} runs have times in the future, which are imported as the present time")
        });
        unknown.chain(left_out).chain(in_future).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_have_numbers_and_reasons() {
        let mut notes = Notes::default();
        notes.unknown("Won't do");
        notes.leave_out("have not ended");
        notes.leave_out("have not ended");
        notes.in_future();
        assert_eq!(
            notes.into_lines(),
            [
                "1 results with the status \"Won't do\" are imported as Canceled",
                "left out: 2 runs that have not ended",
                "1 runs have times in the future, which are imported as the present time",
            ]
        );
        assert!(Notes::default().into_lines().is_empty());
    }
}
