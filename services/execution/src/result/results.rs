//! Converts the tests of reports to results as they are read.

mod amendment;

use assay_formats::{Amendment, Identities, Nature, Receiver, Retry, Test};
use assay_ledger::{
    failure,
    instance::steps::{StoredStep, Writer},
    progress::instance::{Attempt, Detail, Outcome, Slot},
};
use assay_proto::{Fault, Timestamp};
use assay_rpc::body::Memory;

use super::{
    attachments::Attachments,
    classification::Classifications,
    rules::{Case, Reported, shifted, shortened},
};

/// Maximum number of tests in an upload.
pub(super) const MOST_TESTS: usize = 100_000;

/// Maximum number of notes on an upload.
const MOST_NOTES: usize = 20;

/// The results of a test: where they are among all.
struct Piece {
    first: usize,
    /// The place behind them.
    end: usize,
    /// The last result of its instance.
    last: usize,
    /// The test of the file that it is a further attempt of; itself, if it is the first one.
    origin: usize,
    /// The test before it with the same parameters, which is another instance so far.
    repeats: Option<usize>,
}

/// The results that were read so far, and what the next ones depend on.
pub(super) struct Results<'v> {
    reporter: String,
    variant: &'v str,
    pub(super) read: Vec<Reported>,
    pub(super) notes: Vec<String>,
    identities: Identities,
    classifications: Classifications,
    /// The tests so far. `begin` is the first one of the open file.
    pieces: Vec<Piece>,
    begin: usize,
    /// For each file that has ended, its first test, and the time at which its tests had ended, as far as it is known.
    ended: Vec<(usize, Option<Timestamp>)>,
    amended: usize,
    writer: Writer,
    pub(super) attachments: Attachments,
}

impl<'v> Results<'v> {
    pub(super) fn new(
        variant: &'v str,
        attachments: Attachments,
        reporter: String,
    ) -> Result<Self, Fault> {
        Ok(Self {
            reporter,
            variant,
            read: Vec::new(),
            notes: Vec::new(),
            identities: Identities::default(),
            classifications: Classifications::default(),
            pieces: Vec::new(),
            begin: 0,
            ended: Vec::new(),
            amended: 0,
            writer: Writer::new()?,
            attachments,
        })
    }

    /// Begins another file. Its tests count from 0.
    pub(super) fn begin_file(&mut self) {
        self.begin = self.pieces.len();
        self.identities.begin_file();
    }

    /// Returns the number of tests of the open file.
    pub(super) fn tests_of_file(&self) -> usize {
        self.pieces.len() - self.begin
    }

    /// Ends a file, and adds the notes on it. The results of a rerun are further attempts.
    pub(super) fn end_file(&mut self, notes: Vec<String>) {
        self.notes.extend(notes);
        self.notes.truncate(MOST_NOTES);
        let (is_rerun, end) = (self.is_rerun(), self.end_of_tests());
        self.ended.push((self.begin, end));
        if is_rerun {
            (self.begin..self.pieces.len()).for_each(|piece| self.join(piece));
        }
    }

    /// Returns whether the open file is from another run of failed tests: it only has tests that had failed in the
    /// files before it, and began after all tests of these files had ended. One that began earlier is of a job beside
    /// them, whose results would hide failures. `assay-ci` has the same rule for reports in several requests.
    fn is_rerun(&self) -> bool {
        let (mut begin, mut end) = (None::<Timestamp>, None::<Timestamp>);
        for piece in &self.pieces[self.begin..] {
            let piece = &self.pieces[piece.origin];
            let Some(before) = piece.repeats.filter(|before| *before < self.begin) else {
                return false;
            };
            let last = &self.read[self.pieces[before].last].attempt.outcome;
            let start = self.read[piece.first].attempt.outcome.start_date_time;
            let is_timed = last.finish_date_time.is_some() && start.is_some();
            if Nature::of(last.result).is_none() || !is_timed {
                return false;
            }
            begin = begin.into_iter().chain(start).min();
            end = end.max(self.end_of_file(before));
        }
        end.zip(begin).is_some_and(|(end, begin)| end <= begin)
    }

    /// Returns the time at which the tests of the open file had ended, as far as it is known.
    fn end_of_tests(&self) -> Option<Timestamp> {
        let first = self.pieces.get(self.begin)?.first;
        self.read[first..].iter().filter_map(|result| result.attempt.outcome.finish_date_time).max()
    }

    /// Returns the time at which the tests of the file with this one had ended.
    fn end_of_file(&self, piece: usize) -> Option<Timestamp> {
        let files = self.ended.partition_point(|(first, _)| *first <= piece);
        self.ended[..files].last().and_then(|(_, end)| *end)
    }

    /// Returns the results, the notes and the attachments.
    pub(super) fn end(self) -> (Vec<Reported>, Vec<String>, Attachments) {
        let mut notes = self.notes;
        notes.extend(self.classifications.note());
        (self.read, notes, self.attachments)
    }

    /// Makes the results of a test further attempts of the test that it repeats.
    fn join(&mut self, piece: usize) {
        let Piece { first, end, origin, .. } = self.pieces[piece];
        let repeats = self.pieces[origin].repeats;
        let Some(before) = repeats.map(|before| self.pieces[before].last) else { return };
        let (slot, number) = (self.read[before].slot.clone(), self.read[before].attempt.number);
        for result in &mut self.read[first..end] {
            result.slot = slot.clone();
            result.attempt.number += number;
        }
    }

    /// Adds the attempts at a test. Returns about how much memory they take, in bytes.
    pub(super) fn add(&mut self, test: &Test) -> Result<usize, Fault> {
        if self.pieces.len() == MOST_TESTS {
            let reason = format!("the report has more than {MOST_TESTS} tests");
            return Err(Fault::Refused { code: "too_many_tests", reason });
        }
        let (identifier, own) = (test.identifier(), test.variant());
        let place = self.identities.place(test, &identifier, &own);
        let parameters = [self.variant, &own].into_iter().filter(|part| !part.is_empty());
        let variant = numbered(&parameters.collect::<Vec<_>>().join(", "), place.instance);
        let variant = shortened(variant);
        let slot = Slot::Named { reporter: self.reporter.clone(), variant };
        if let Some(first) = place.attempt_of.filter(|_| test.retry == Retry::Always) {
            self.fail_unreported(self.pieces[first].last, test)?;
        }
        let (classification, mut size) = self.classifications.of(test);
        let first = self.read.len();
        let before = i32::try_from(place.attempts).map_err(Fault::internal)?;
        for (attempt, number) in test.attempts.iter().zip(before + 1..) {
            let files = self.attachments.names(&attempt.attachments);
            let result = Reported {
                case: Some(Case::Identifier(identifier.clone())),
                former: test.former_identifier(),
                name: Some(test.title()),
                slot: slot.clone(),
                classification: classification.clone(),
                attempt: attempt_of(test, attempt, number, files, &mut self.writer)?,
            };
            size += result.size();
            self.read.push(result);
        }
        let last = self.read.len().saturating_sub(1);
        if let Some(origin) = place.attempt_of {
            self.pieces[origin].last = last;
        }
        let (end, origin) = (self.read.len(), place.attempt_of.unwrap_or(self.pieces.len()));
        self.pieces.push(Piece { first, end, last, origin, repeats: place.repeats });
        Ok(size)
    }

    /// Lets an attempt fail that seems to have passed, because another one followed.
    fn fail_unreported(&mut self, index: usize, test: &Test) -> Result<(), Fault> {
        let before = &mut self.read[index].attempt;
        let mut attempt = assay_formats::Attempt {
            result: before.outcome.result,
            seconds: before.outcome.duration_in_sec,
            ..assay_formats::Attempt::default()
        };
        attempt.fail_unreported();
        if attempt.result != before.outcome.result {
            before.outcome.result = attempt.result;
            let steps: Vec<_> = test.steps_of(&attempt).into_iter().map(StoredStep::from).collect();
            before.detail.steps = written(&steps, &mut self.writer)?;
        }
        Ok(())
    }
}

/// Receives the tests of a file or an archive.
pub(super) struct Receiving<'r, 'v> {
    pub(super) results: &'r mut Results<'v>,
    pub(super) memory: &'r mut Memory,
    /// Whether the results need memory of their own. Those of a file take about as much as it did.
    pub(super) is_archive: bool,
}

impl Receiver for Receiving<'_, '_> {
    fn test(&mut self, test: Test) -> Result<(), Fault> {
        let size = self.results.add(&test)?;
        if self.is_archive { self.memory.grow(size) } else { Ok(()) }
    }

    /// Every test gets the amendment, so that a small file can need much memory.
    fn amend(&mut self, first: usize, amendment: &Amendment) -> Result<(), Fault> {
        self.results.change(first, amendment, self.memory)
    }
}

/// Returns the parameters of an instance, with its number if there are others with the same ones.
fn numbered(variant: &str, instance: usize) -> String {
    match (instance, variant) {
        (1, _) => variant.to_owned(),
        (number, "") => format!("#{number}"),
        (number, variant) => format!("{variant} #{number}"),
    }
}

fn attempt_of(
    test: &Test,
    attempt: &assay_formats::Attempt,
    number: i32,
    screenshots: Vec<String>,
    writer: &mut Writer,
) -> Result<Attempt, Fault> {
    let (start, seconds) = test.times_of(attempt);
    let outcome = Outcome {
        result: attempt.result,
        start_date_time: start,
        finish_date_time: start.and_then(|start| shifted(start, seconds)),
        duration_in_sec: seconds,
    };
    let mut steps: Vec<StoredStep> =
        test.steps_of(attempt).into_iter().map(StoredStep::from).collect();
    if let Some(last) = steps.last_mut() {
        last.screenshots = screenshots;
    }
    let cause = failure::cause(outcome.result, &steps).map(Box::new);
    let steps = written(&steps, writer)?;
    Ok(Attempt { number, outcome, detail: Detail { steps, ..Detail::default() }, cause })
}

/// Returns the stored form of steps. Of steps that are too large, only the first one, which always fits.
fn written(steps: &[StoredStep], writer: &mut Writer) -> Result<Vec<u8>, Fault> {
    match writer.write(steps)? {
        Some(steps) => Ok(steps),
        None => Ok(writer.write(&steps[..1])?.unwrap_or_default()),
    }
}
