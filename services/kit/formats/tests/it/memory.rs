//! The memory of readers does not depend on the size of a report. A generator writes reports of any
//! size while they are read, and the allocator counts the bytes in use.

mod documents;
mod fillers;
mod reports;

use std::{
    alloc::System,
    collections::BTreeMap,
    io::{self, BufRead, Read},
    time::Instant,
};

use assay_formats::{Test, allure::Files, archive, read};
use assay_proto::Fault;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use self::{
    documents::{json, more_json},
    reports::{blob, endless_blobs, lines, more_xml, xml},
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum memory of a reader, in bytes.
const LARGEST: usize = 4 << 20;

/// Size of a report in an ordinary run, and in a long one, in bytes.
const SIZE: usize = 12 << 20;
const LONG: usize = 200 << 20;

/// A report: a start, tests by number, and an end.
#[derive(Clone)]
struct Report {
    name: &'static str,
    start: &'static str,
    test: fn(usize) -> String,
    end: &'static str,
}

/// Writes a report while it is read.
struct Generator<'r> {
    report: &'r Report,
    part: Vec<u8>,
    read: usize,
    /// Number of tests so far.
    tests: usize,
    written: usize,
    size: usize,
    has_ended: bool,
    region: Region<'static, System>,
    /// Maximum of the bytes in use by the reader.
    peak: usize,
}

impl<'r> Generator<'r> {
    fn new(report: &'r Report, size: usize) -> Self {
        Self {
            report,
            part: report.start.as_bytes().to_vec(),
            read: 0,
            tests: 0,
            written: 0,
            size,
            has_ended: false,
            region: Region::new(ALLOCATOR),
            peak: 0,
        }
    }

    /// Measures the bytes in use since the start, without the part that is read.
    fn measure(&mut self) {
        let change = self.region.change();
        let used = change.bytes_allocated.saturating_sub(change.bytes_deallocated);
        self.peak = self.peak.max(used.saturating_sub(self.part.capacity()));
    }
}

impl BufRead for Generator<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.measure();
        while self.read == self.part.len() && !self.has_ended {
            let part = if self.written < self.size {
                self.tests += 1;
                (self.report.test)(self.tests)
            } else {
                self.has_ended = true;
                self.report.end.to_owned()
            };
            self.written += part.len();
            (self.part, self.read) = (part.into_bytes(), 0);
        }
        Ok(&self.part[self.read..])
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
    }
}

impl Read for Generator<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// Reads each report, and compares the bytes in use whenever the reader continues.
fn check(size: usize) {
    for report in [xml(), more_xml(), json(), more_json(), lines()].concat() {
        let (mut generator, mut tests) = (Generator::new(&report, size), 0);
        let sink = |_: Test| {
            tests += 1;
            Ok(())
        };
        let begin = Instant::now();
        read(&mut generator, sink).unwrap_or_else(|fault| panic!("{}: {fault}", report.name));
        let Generator { tests: expected, written, peak, .. } = generator;
        let (name, took) = (report.name, begin.elapsed());
        println!("{name}: {written} bytes, {tests} tests, {peak} bytes of memory, {took:.1?}");
        assert_eq!(tests, expected, "{name}");
        assert!(peak < LARGEST, "{name}: {peak} bytes of memory");
    }
}

/// A blob report of Playwright, whose events are generated.
struct Blob<'r>(&'r Report, usize);

impl Files for Blob<'_> {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        BTreeMap::from([("report.jsonl".to_owned(), self.1 as u64)])
    }

    fn open(&mut self, _: &str) -> Result<Box<dyn Read + '_>, Fault> {
        Ok(Box::new(Generator::new(self.0, self.1)))
    }
}

#[test]
fn the_reader_of_blobs_needs_little_memory() {
    let (report, region) = (blob(), Region::new(ALLOCATOR));
    let (mut tests, mut peak) = (0, 0);
    let sink = |_: Test| {
        let change = region.change();
        peak = peak.max(change.bytes_allocated.saturating_sub(change.bytes_deallocated));
        tests += 1;
        Ok(())
    };
    archive::read(&mut Blob(&report, SIZE), sink).unwrap();
    println!("{}: {tests} tests, {peak} bytes of memory", report.name);
    assert!(tests > 100);
    assert!(peak < LARGEST, "{peak} bytes of memory");
}

#[test]
fn blobs_whose_results_do_not_end_are_refused() {
    for report in endless_blobs() {
        let fault = archive::read(&mut Blob(&report, 60 << 20), |_: Test| Ok(())).unwrap_err();
        assert!(
            fault.to_string().contains("split the run into shards"),
            "{}: {fault}",
            report.name
        );
    }
}

#[test]
fn readers_need_little_memory() {
    check(SIZE);
}

#[test]
#[ignore = "takes minutes: cargo nextest run -p assay-formats --profile long --run-ignored only"]
fn readers_of_large_reports_need_little_memory() {
    check(LONG);
}
