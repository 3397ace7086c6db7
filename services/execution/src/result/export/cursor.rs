//! The way through what is stored of reports, the instances or all attempts at them, in parts of bounded size.

use std::{collections::VecDeque, future::Future};

use assay_proto::{Fault, TestReportId};
use futures::{Stream, stream};

use super::MESSAGE;
use crate::test_report::list::ListedReport;

/// A stored instance, or an attempt at one.
pub(super) trait Stored {
    /// The number of its report among those that were read, from 1.
    fn report_nr(&self) -> i64;

    /// Its place in the report: the number of the instance, and that of the attempt.
    fn place(&self) -> (i32, i32);
}

/// The next part of a report.
pub(super) enum Next<S> {
    Stored(S),
    /// The instance with this number is missing.
    Missing(i32),
}

/// The progress through some reports.
struct Cursor<S> {
    reports: Vec<ListedReport>,
    /// The index of the report that comes next.
    report: usize,
    /// The place of what came last in this report.
    after: (i32, i32),
    /// How many of its instances have come.
    instances: i32,
    /// Parts that were read and have not come yet, each with the index of its report.
    read: VecDeque<(usize, S)>,
    /// Whether all was read.
    is_complete: bool,
}

/// Writes what is stored of reports, in parts. `read` returns what comes after a place in the first of some reports,
/// and whether that is all.
pub(super) fn texts<S, R, F, W>(
    reports: Vec<ListedReport>,
    read: R,
    write: W,
) -> impl Stream<Item = Result<String, Fault>> + Send
where
    S: Stored + Send,
    R: Fn(Vec<TestReportId>, (i32, i32)) -> F + Send,
    F: Future<Output = Result<(Vec<S>, bool), Fault>> + Send,
    W: Fn(&mut String, &ListedReport, Next<S>) -> Result<(), Fault> + Send,
{
    stream::try_unfold(
        (Cursor::new(reports), read, write),
        |(mut cursor, read, write)| async move {
            let mut text = String::new();
            while cursor.report < cursor.reports.len() && text.len() < MESSAGE {
                if cursor.read.is_empty() && !cursor.is_complete {
                    let reading = read(cursor.unread()?, cursor.after);
                    cursor.add(reading.await?)?;
                }
                if let Some((report, next)) = cursor.next() {
                    write(&mut text, report, next)?;
                }
            }
            Ok((!text.is_empty()).then_some((text, (cursor, read, write))))
        },
    )
}

impl<S: Stored> Cursor<S> {
    fn new(reports: Vec<ListedReport>) -> Self {
        let read = VecDeque::new();
        Self { reports, report: 0, after: (0, 0), instances: 0, read, is_complete: false }
    }

    fn unread(&self) -> Result<Vec<TestReportId>, Fault> {
        self.reports[self.report..].iter().map(|one| TestReportId::from_path(&one.id)).collect()
    }

    fn add(&mut self, (found, is_complete): (Vec<S>, bool)) -> Result<(), Fault> {
        self.is_complete = is_complete;
        for stored in found {
            let index = usize::try_from(stored.report_nr() - 1).map_err(Fault::internal)?;
            self.read.push_back((self.report + index, stored));
        }
        Ok(())
    }

    /// Returns what comes next, or nothing if more must be read or there is nothing left.
    fn next(&mut self) -> Option<(&ListedReport, Next<S>)> {
        loop {
            let index = self.report;
            let report = self.reports.get(index)?;
            if let Some((_, stored)) = self.read.pop_front_if(|(of, _)| *of == index) {
                let place = stored.place();
                self.instances += i32::from(place.0 != self.after.0);
                self.after = place;
                return Some((report, Next::Stored(stored)));
            }
            if self.read.is_empty() && !self.is_complete {
                return None;
            }
            if self.instances < report.requested_instances_count {
                self.instances += 1;
                return Some((report, Next::Missing(self.instances)));
            }
            self.report += 1;
            (self.after, self.instances) = ((0, 0), 0);
        }
    }
}
