//! The rows of the tables: what is measured.

use crate::shape::Shape;

/// A row, measured in each system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Row {
    /// Read a test case by id
    Read,
    /// List of 100 test cases
    List,
    /// Create a test case
    Create,
    /// Update a test case
    Update,
    /// Login with a password
    Login,
    /// List of 50,000 test cases
    Whole,
    /// JUnit reports of 20,000 and 3,400 tests, new and known ones
    Junit,
    /// 10,000 results with 20 steps each in one request, and reads of them
    Results,
    /// Upload of a file of 1 GiB, in one request and by tus
    Files,
    /// Work of engines: a lease and the report of its result
    Leases,
    /// Notification to 100 event streams
    Stream,
    /// Events of reports of 20 and 3,400 tests: until they arrive, their sizes, and their processor time
    Events,
    /// Import of 10,000 test cases until a webhook has received all
    Pipeline,
    /// Start and stop of the programs
    Restart,
    /// Executions of 20,000 tests with failures, and reads that judge them
    Judgement,
    /// Reads among 10,000 and 10,000,000 instances; takes minutes and 6 GB, so only if it is named
    Growth,
    /// Reads that judge in a project with 10,000,000 reports, and a backtest of them; takes minutes and
    /// 15 GB, so only if it is named
    Judgements,
}

impl Row {
    /// Whether the row exists in a system of this shape.
    pub(crate) fn is_in(self, shape: Shape) -> bool {
        match shape {
            Shape::Line => matches!(self, Self::Read | Self::List),
            Shape::Baseline => matches!(
                self,
                Self::Read
                    | Self::List
                    | Self::Create
                    | Self::Update
                    | Self::Whole
                    | Self::Results
                    | Self::Files
            ),
            _ => true,
        }
    }
}
