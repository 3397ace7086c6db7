//! Reads the reports of test tools.

use std::collections::HashMap;

use assay_formats::{
    Test,
    allure::{self, ARCHIVE, Archive, Files},
};
use assay_proto::Fault;
use assay_runtime::body::{Body, File, Memory};
use aws_lc_rs::digest;

use super::{
    attachments::Attachments,
    chunks::Chunks,
    folder::Folder,
    rules::{Case, Reported, shifted},
};
use crate::{
    artifact::staged::NewFile,
    failure,
    instance::steps::{StoredStep, Writer},
    progress::instance::{Attempt, Detail, Outcome, Slot},
};

/// Maximum number of tests in an upload.
const MOST_TESTS: usize = 100_000;

/// The contents of one or several files.
pub(crate) struct Report {
    /// The results in their order, one for each attempt.
    pub(crate) results: Vec<Reported>,
    /// The SHA-256 digest of the files, the reporter and the variant.
    pub(crate) digest: Vec<u8>,
    /// The attachments that results refer to by name.
    pub(crate) attachments: Vec<NewFile>,
}

/// Reads one or several files. All instances belong to the reporter, and have the parameters of
/// `variant` in front of their own. Without a name, the reporter has one that follows from the
/// files, so that they have instances of their own.
///
/// A form with Allure results is read as their folder. In other forms, each file is a report, or an
/// attachment of one that refers to it by its name.
pub(crate) fn read(
    body: Body,
    reporter: Option<&str>,
    variant: &str,
    memory: &mut Memory,
) -> Result<Report, Fault> {
    let digest = digest(&body.files);
    let generated = || match digest[..] {
        [a, b, c, d, ..] => format!("report-{:08x}", u32::from_be_bytes([a, b, c, d])),
        _ => "report".to_owned(),
    };
    let reporter = reporter.map_or_else(generated, str::to_owned);
    // Reporters can have the same report.
    let digest = digest_of([&digest[..], reporter.as_bytes(), variant.as_bytes()]);
    let mut results = Results::new(variant, Attachments::of_upload(&digest), reporter)?;
    if body.files.iter().any(|file| allure::is_result(&file.name)) {
        results.read_allure(&mut Folder::of(&body.files), memory)?;
    } else {
        let (attached, reports): (Vec<_>, Vec<_>) =
            body.files.into_iter().partition(|file| file.is_attachment);
        let mut attached = Folder::of(&attached);
        for file in reports {
            results.read_file(file, &mut attached, memory)?;
        }
    }
    let Results { read: results, attachments, .. } = results;
    if results.is_empty() {
        let reason = "the report has no tests".to_owned();
        return Err(Fault::Refused { code: "no_tests", reason });
    }
    Ok(Report { results, digest, attachments: attachments.into_files() })
}

/// Converts tests that were not read from a file, up to the maximum number. Their instances belong to
/// no reporter.
pub(crate) fn of_tests(tests: impl Iterator<Item = Test>) -> Result<Report, Fault> {
    let mut results = Results::new("", Attachments::default(), String::new())?;
    for test in tests.take(MOST_TESTS) {
        results.add(&test)?;
    }
    let Results { read: results, attachments, .. } = results;
    Ok(Report { results, digest: Vec::new(), attachments: attachments.into_files() })
}

/// The results that were read so far, and what the next ones depend on.
struct Results<'v> {
    reporter: String,
    variant: &'v str,
    read: Vec<Reported>,
    tests: usize,
    names: Names,
    writer: Writer,
    attachments: Attachments,
}

impl<'v> Results<'v> {
    fn new(variant: &'v str, attachments: Attachments, reporter: String) -> Result<Self, Fault> {
        let (read, names, writer) = (Vec::new(), Names::default(), Writer::new()?);
        Ok(Self { reporter, variant, read, tests: 0, names, writer, attachments })
    }
}

impl Results<'_> {
    /// Reads a report, or an archive of Allure results.
    fn read_file(
        &mut self,
        file: File,
        attached: &mut Folder<'_>,
        memory: &mut Memory,
    ) -> Result<(), Fault> {
        let chunks = Chunks::new(file.parts());
        if chunks.starts_with(ARCHIVE) {
            let mut archive = Archive::open(chunks)?;
            memory.grow(archive.directory_size())?;
            return self.read_allure(&mut archive, memory);
        }
        self.attachments.offer(attached);
        // The results take about as much memory as the file did.
        assay_formats::read(file, |test| self.add(&test).map(drop))?;
        self.attachments.read(attached, memory)
    }

    fn read_allure(&mut self, folder: &mut dyn Files, memory: &mut Memory) -> Result<(), Fault> {
        self.attachments.offer(folder);
        allure::read(folder, |test| memory.grow(self.add(&test)?))?;
        self.attachments.read(folder, memory)
    }

    /// Adds the attempts at a test. Returns about how much memory they take, in bytes.
    fn add(&mut self, test: &Test) -> Result<usize, Fault> {
        self.tests += 1;
        if self.tests > MOST_TESTS {
            let reason = format!("the report has more than {MOST_TESTS} tests");
            return Err(Fault::Refused { code: "too_many_tests", reason });
        }
        let identifier = test.identifier();
        let parameters: Vec<_> = [self.variant, &test.variant()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let variant = self.names.distinct(&identifier, parameters.join(", "));
        let slot = Slot::Named { reporter: self.reporter.clone(), variant };
        let mut size = 0;
        for (attempt, number) in test.attempts.iter().zip(1..) {
            let files = self.attachments.names(&attempt.attachments);
            let result = Reported {
                case: Some(Case::Identifier(identifier.clone())),
                name: Some(test.title()),
                slot: slot.clone(),
                attempt: attempt_of(test, attempt, number, files, &mut self.writer)?,
            };
            size += result.size();
            self.read.push(result);
        }
        Ok(size)
    }
}

/// How often the files have named each instance.
#[derive(Default)]
struct Names(HashMap<(String, String), usize>);

impl Names {
    /// Returns the parameters of an instance, with a number if the files have named it before: each
    /// time is another instance.
    fn distinct(&mut self, identifier: &str, variant: String) -> String {
        let count = self.0.entry((identifier.to_owned(), variant.clone())).or_default();
        *count += 1;
        match (*count, variant.as_str()) {
            (1, _) => variant,
            (count, "") => format!("#{count}"),
            (count, variant) => format!("{variant} #{count}"),
        }
    }
}

fn attempt_of(
    test: &Test,
    attempt: &assay_formats::Attempt,
    number: i32,
    screenshots: Vec<String>,
    writer: &mut Writer,
) -> Result<Attempt, Fault> {
    let is_last = test.attempts.last().is_some_and(|last| std::ptr::eq(last, attempt));
    // Tools that do not time attempts time the test.
    let start = attempt.start.or(test.start.filter(|_| is_last));
    let seconds = if is_last && attempt.seconds == 0.0 { test.seconds } else { attempt.seconds };
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
    let steps = match writer.write(&steps)? {
        Some(steps) => steps,
        // The steps are too large. The first one always fits.
        None => writer.write(&steps[..1])?.unwrap_or_default(),
    };
    Ok(Attempt { number, outcome, detail: Detail { steps, ..Detail::default() }, cause })
}

/// Returns a digest of the contents of files and of the names of attachments. Other names do not
/// matter.
fn digest(files: &[File]) -> Vec<u8> {
    let mut digest = digest::Context::new(&digest::SHA256);
    for file in files {
        digest.update(&file.size().to_le_bytes());
        file.parts().for_each(|part| digest.update(part));
        if file.is_attachment {
            digest.update(&file.name.len().to_le_bytes());
            digest.update(file.name.as_bytes());
        }
    }
    digest.finish().as_ref().to_vec()
}

/// Returns a digest of parts of any length.
fn digest_of<const PARTS: usize>(parts: [&[u8]; PARTS]) -> Vec<u8> {
    let mut digest = digest::Context::new(&digest::SHA256);
    for part in parts {
        digest.update(&part.len().to_le_bytes());
        digest.update(part);
    }
    digest.finish().as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write};

    use assay_proto::CustomerId;
    use assay_runtime::body::{Intake, Piece};
    use futures::{FutureExt, stream};
    use zip::{ZipWriter, write::SimpleFileOptions};

    use super::*;

    /// An archive with a test that has this many attachments of 1 MB, which compress to nothing.
    fn bomb(attachments: usize) -> Vec<u8> {
        let name = |number| format!("{number}-attachment.bin");
        let attached: Vec<_> = (0..attachments)
            .map(|number| serde_json::json!({ "name": "zeros", "source": name(number) }))
            .collect();
        let result = serde_json::json!({
            "uuid": "1", "historyId": "1", "fullName": "shop.buy", "name": "buy",
            "status": "failed", "attachments": attached,
        });
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let mut add = |name: String, contents: &[u8]| {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(contents).unwrap();
        };
        add("1-result.json".to_owned(), result.to_string().as_bytes());
        (0..attachments).for_each(|number| add(name(number), &vec![0; 1_000_000]));
        zip.finish().unwrap().into_inner()
    }

    #[tokio::test]
    async fn decompressed_attachments_count_against_the_memory_of_the_customer() {
        let (intake, customer) = (Intake::new(8), CustomerId::new());
        let archive = bomb(5);
        assert!(archive.len() < 20_000);
        let piece = Piece { chunk: archive.into(), file: None, last: true };
        let parse = |body, memory: &mut Memory| read(body, None, "", memory);
        let read = intake.read(customer, stream::iter([Ok(piece)]), parse);
        let (report, memory) = read.await.unwrap();
        assert_eq!(report.attachments.len(), 5);
        assert!(intake.reserve(customer, 2 << 20).now_or_never().is_none(), "5 of 6 MiB are held");
        drop(memory);
        assert!(intake.reserve(customer, 2 << 20).now_or_never().is_some());
    }
}
