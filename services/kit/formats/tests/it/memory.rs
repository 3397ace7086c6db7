//! The memory of readers does not depend on the size of a report. A generator writes reports of any
//! size while they are read, and the allocator counts the bytes in use.

use std::{
    alloc::System,
    io::{self, BufRead, Read},
};

use assay_formats::{Test, read};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum memory of a reader that passes its tests on, in bytes.
const LARGEST: usize = 8 << 20;

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
    largest: usize,
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
}

impl<'r> Generator<'r> {
    fn new(report: &'r Report, size: usize) -> Self {
        let part = report.start.as_bytes().to_vec();
        Self { report, part, read: 0, tests: 0, written: 0, size, has_ended: false }
    }
}

impl BufRead for Generator<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
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

/// Text of a stack trace or output. Most tests have a short one, and some a long one.
fn text(number: usize) -> String {
    let lines = if number.is_multiple_of(100) { 20_000 } else { 10 };
    "    at com.acme.shop.Cart.pay(Cart.java:12)|".repeat(lines)
}

/// Reports in XML.
fn xml() -> Vec<Report> {
    vec![
        Report {
            name: "JUnit",
            start: "<testsuites><testsuite name='shop'>",
            test: |number| {
                format!(
                    "<testcase classname='c' name='{number}'><failure message='m'>{}</failure>\
                     <system-out><![CDATA[{}]]></system-out></testcase>\n",
                    text(number),
                    text(number)
                )
            },
            end: "</testsuite></testsuites>",
            largest: LARGEST,
        },
        Report {
            name: "Robot",
            start: "<robot><suite name='shop'>",
            test: |number| {
                let keyword =
                    "<kw name='Log'><msg level='INFO'>x</msg><status status='PASS'/></kw>";
                format!(
                    "<test name='{number}'>{}<msg>{}</msg><status status='FAIL'>{}</status></test>",
                    keyword.repeat(if number.is_multiple_of(50) { 10_000 } else { 5 }),
                    text(number),
                    text(number)
                )
            },
            end: "</suite></robot>",
            largest: LARGEST,
        },
        Report {
            name: "NUnit",
            start: "<test-run><test-suite name='shop'>",
            test: |number| {
                format!(
                    "<test-case name='{number}' classname='c' result='Failed'><failure><message>m\
                     </message><stack-trace>{}</stack-trace></failure><output>{}</output></test-case>",
                    text(number),
                    text(number)
                )
            },
            end: "</test-suite></test-run>",
            largest: LARGEST,
        },
        Report {
            name: "xUnit",
            start: "<assemblies><assembly name='a'><collection>",
            test: |number| {
                format!(
                    "<test type='c' name='c.{number}' result='Fail'><failure><message>m</message>\
                     <stack-trace>{}</stack-trace></failure></test>",
                    text(number)
                )
            },
            end: "</collection></assembly></assemblies>",
            largest: LARGEST,
        },
    ]
}

/// Further reports in XML, of .NET and Java.
fn more_xml() -> Vec<Report> {
    vec![
        Report {
            name: "TRX",
            start: "<TestRun><TestDefinitions><UnitTest id='1'><TestMethod className='c'/></UnitTest>\
                    </TestDefinitions><Results>",
            test: |number| {
                format!(
                    "<UnitTestResult testId='1' testName='c.{number}' outcome='Failed'><Output>\
                     <ErrorInfo><Message>m</Message><StackTrace>{}</StackTrace></ErrorInfo></Output>\
                     </UnitTestResult>",
                    text(number)
                )
            },
            end: "</Results></TestRun>",
            largest: LARGEST,
        },
        Report {
            name: "TestNG",
            start: "<testng-results><suite name='s'><test name='t'><class name='c'>",
            test: |number| {
                format!(
                    "<test-method name='{number}' status='FAIL'><exception><full-stacktrace>{}\
                     </full-stacktrace></exception></test-method>",
                    text(number)
                )
            },
            end: "</class></test></suite></testng-results>",
            largest: LARGEST,
        },
    ]
}

/// Reports that are one JSON document.
fn json() -> Vec<Report> {
    vec![
        Report {
            name: "CTRF",
            start: "{\"reportFormat\": \"CTRF\", \"results\": {\"tool\": {\"name\": \"t\"}, \"tests\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"name\": \"{number}\", \"status\": \"failed\", \"trace\": \"{}\",\
                     \"stdout\": [\"{}\"]}}",
                    text(number),
                    text(number)
                )
            },
            end: "]}}",
            largest: LARGEST,
        },
        Report {
            name: "Playwright",
            start: "{\"config\": {\"rootDir\": \"/\"}, \"suites\": [{\"title\": \"a\", \"specs\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"title\": \"{number}\", \"tests\": [{{\"results\": [{{\"status\": \
                     \"failed\", \"error\": {{\"stack\": \"{}\"}}, \"attachments\": [{{\"name\": \"a\",\
                     \"body\": \"{}\"}}]}}]}}]}}",
                    text(number),
                    "AAAA".repeat(if number.is_multiple_of(20) { 500_000 } else { 100 })
                )
            },
            end: "]}]}",
            largest: 2 * LARGEST,
        },
        Report {
            name: "Cucumber JSON",
            start: "[",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"elements\": [{{\"type\": \"scenario\", \"name\": \"s\", \"steps\": \
                     [{{\"name\": \"a\", \"result\": {{\"status\": \"failed\", \"error_message\": \
                     \"{}\"}}}}]}}], \"name\": \"{number}\"}}",
                    text(number)
                )
            },
            end: "]",
            largest: LARGEST,
        },
    ]
}

/// Reports with lines.
fn lines() -> Vec<Report> {
    vec![
        Report {
            name: "Cucumber messages",
            start: "{\"meta\": {\"protocolVersion\": \"32\"}}\n",
            test: |number| {
                format!(
                    "{{\"pickle\": {{\"id\": \"p{number}\", \"name\": \"s\", \"steps\": []}}}}\n\
                     {{\"testCase\": {{\"id\": \"c{number}\", \"pickleId\": \"p{number}\"}}}}\n\
                     {{\"testCaseStarted\": {{\"id\": \"s{number}\", \"testCaseId\": \"c{number}\"}}}}\n\
                     {{\"attachment\": {{\"testCaseStartedId\": \"s{number}\", \"body\": \"{}\"}}}}\n\
                     {{\"testCaseFinished\": {{\"testCaseStartedId\": \"s{number}\"}}}}\n",
                    text(number)
                )
            },
            end: "",
            largest: 2 * LARGEST,
        },
        Report {
            name: "go test",
            start: "",
            test: |number| {
                let event = |action: &str, more: &str| {
                    format!(
                        "{{\"Action\": \"{action}\", \"Package\": \"p\", \"Test\": \"T{number}\"{more}}}\n"
                    )
                };
                let output = event("output", ", \"Output\": \"a line of the output\\n\"");
                let lines = if number.is_multiple_of(100) { 10_000 } else { 10 };
                event("run", "") + &output.repeat(lines) + &event("fail", ", \"Elapsed\": 0.1")
            },
            end: "{\"Action\": \"fail\", \"Package\": \"p\"}\n",
            largest: LARGEST,
        },
        Report {
            name: "TAP",
            start: "TAP version 14\n",
            test: |number| {
                format!(
                    "not ok {number} - t{number}\n  ---\n  {}\n  ...\n",
                    text(number).replace('|', "\n  ")
                )
            },
            end: "",
            largest: LARGEST,
        },
    ]
}

/// Reads each report, and compares the bytes in use whenever a test arrives.
fn check(size: usize) {
    for report in [xml(), more_xml(), json(), lines()].concat() {
        let region = Region::new(ALLOCATOR);
        let mut peak = 0;
        let mut generator = Generator::new(&report, size);
        let mut tests = 0;
        let sink = |_: Test| {
            let change = region.change();
            peak = peak.max(change.bytes_allocated.saturating_sub(change.bytes_deallocated));
            tests += 1;
            Ok(())
        };
        read(&mut generator, sink).unwrap_or_else(|fault| panic!("{}: {fault}", report.name));
        let (expected, written) = (generator.tests, generator.written);
        println!("{}: {written} bytes, {tests} tests, {peak} bytes of memory", report.name);
        assert_eq!(tests, expected, "{}", report.name);
        assert!(peak < report.largest, "{}: {peak} bytes of memory", report.name);
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
