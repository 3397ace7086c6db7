//! Reads the reports of test tools.

use assay_formats::{
    Attempt, Nature, Problem, Test,
    allure::{self, ARCHIVE, Archive, Files, directory_size},
    archive,
};
use assay_proto::{Fault, TestResult};
use assay_rpc::body::{Body, File, Memory};
use aws_lc_rs::digest;

use super::{
    attachments::Attachments,
    chunks::Chunks,
    folder::Folder,
    results::{MOST_TESTS, Receiving, Results},
    rules::Reported,
};
use crate::artifact::staged::NewFile;

/// The contents of one or several files.
pub(crate) struct Report {
    /// The results in their order, one for each attempt.
    pub(crate) results: Vec<Reported>,
    /// The SHA-256 digest of the files, the reporter and the variant.
    pub(crate) digest: Vec<u8>,
    /// The attachments that results refer to by name.
    pub(crate) attachments: Vec<NewFile>,
    /// Notes on the report for the readers of its execution.
    pub(crate) notes: Vec<String>,
}

/// How to read files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'o> {
    /// The reporter of all instances. Without one, it follows from the files, so that they have
    /// instances of their own.
    pub(crate) reporter: Option<&'o str>,
    /// Parameters of all instances, in front of their own.
    pub(crate) variant: &'o str,
    /// Whether the sound tests of a file that is broken are kept.
    pub(crate) is_partial: bool,
}

/// Reads one or several files.
///
/// A form with Allure results is read as their folder. In other forms, each file is a report, or an
/// attachment of one that refers to it by its name.
pub(crate) fn read(body: Body, options: Options<'_>, memory: &mut Memory) -> Result<Report, Fault> {
    let Options { reporter, variant, is_partial } = options;
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
        read_folder(&mut results, &mut Folder::of(&body.files), memory)?;
    } else {
        let (attached, reports): (Vec<_>, Vec<_>) =
            body.files.into_iter().partition(|file| file.is_attachment);
        let mut attached = Folder::of(&attached);
        let count = reports.len();
        for (file, number) in reports.into_iter().zip(1..) {
            let place = (count > 1).then(|| place(&file.name, number, count));
            read_file(&mut results, file, &mut attached, is_partial, memory)
                .map_err(|fault| in_file(fault, place.as_deref()))?;
        }
    }
    let (results, notes, attachments) = results.end();
    if results.is_empty() {
        let reason = "the report has no tests".to_owned();
        return Err(Fault::Refused { code: "no_tests", reason });
    }
    Ok(Report { results, digest, attachments: attachments.into_files(), notes })
}

/// Returns the place of a file in a form.
fn place(name: &str, number: usize, count: usize) -> String {
    match name {
        "" => format!("file {number} of {count}"),
        name => format!("{name} (file {number} of {count})"),
    }
}

/// Adds the file of a form to its fault, and what becomes of the others.
fn in_file(fault: Fault, place: Option<&str>) -> Fault {
    let Some(place) = place else { return fault };
    let text = |reason| {
        format!(
            "{place}: {reason}. No file of the request was stored: leave this one out, or correct it"
        )
    };
    match fault {
        Fault::Malformed(reason) => Fault::Malformed(text(reason)),
        Fault::Refused { code, reason } => Fault::Refused { code, reason: text(reason) },
        fault => fault,
    }
}

/// Reads a report, or an archive with one.
fn read_file(
    results: &mut Results<'_>,
    file: File,
    attached: &mut Folder<'_>,
    is_partial: bool,
    memory: &mut Memory,
) -> Result<(), Fault> {
    let chunks = Chunks::new(file.parts());
    if chunks.starts_with(ARCHIVE) {
        memory.grow(directory_size(file.parts())?)?;
        let mut archive = Archive::open(chunks)?;
        return read_folder(results, &mut archive, memory);
    }
    results.attachments.offer(attached);
    results.begin_file();
    let receiving = Receiving { results: &mut *results, memory: &mut *memory, is_archive: false };
    let notes = match assay_formats::read(file, receiving) {
        Err(Fault::Malformed(reason)) if is_partial && results.tests_of_file() > 0 => {
            results.add(&incomplete(&reason))?;
            Vec::new()
        }
        notes => notes?,
    };
    results.end_file(notes);
    results.attachments.read(attached, memory)
}

/// Returns the entry of a file of which only a part could be read, which fails its execution.
fn incomplete(reason: &str) -> Test {
    let message = assay_formats::problem(reason).to_owned();
    let problem = Problem { nature: Nature::Abortion, message, ..Problem::default() };
    let result = TestResult::Aborted;
    let attempt = Attempt { result, problems: vec![problem], ..Attempt::default() };
    let name = "Incomplete report".to_owned();
    Test { name, attempts: vec![attempt], ..Test::default() }
}

fn read_folder(
    results: &mut Results<'_>,
    folder: &mut dyn Files,
    memory: &mut Memory,
) -> Result<(), Fault> {
    results.attachments.offer(folder);
    results.begin_file();
    let receiving = Receiving { results: &mut *results, memory: &mut *memory, is_archive: true };
    let notes = archive::read(folder, receiving)?;
    results.end_file(notes);
    results.attachments.read(folder, memory)
}

/// Converts tests that were not read from a file, up to the maximum number. Their instances belong to
/// no reporter.
pub(crate) fn of_tests(tests: impl Iterator<Item = Test>) -> Result<Report, Fault> {
    let mut results = Results::new("", Attachments::default(), String::new())?;
    for test in tests.take(MOST_TESTS) {
        results.add(&test)?;
    }
    let (results, notes, attachments) = results.end();
    Ok(Report { results, digest: Vec::new(), attachments: attachments.into_files(), notes })
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
    use assay_rpc::body::{Intake, Piece};
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

    /// A report with this many tests, all of which fail with the teardown of their suite.
    fn torn_down(tests: u64) -> Vec<u8> {
        let test = |number| format!("<test name='{number}'><status status='PASS'/></test>");
        let tests = (0..tests).map(test).collect::<Vec<_>>().concat();
        // Random letters, which do not compress well.
        let mut state = 1_u64;
        let mut letter = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'!' + u8::try_from(state >> 58).unwrap_or_default()).to_ascii_lowercase()
        };
        let message: String =
            (0..4000).map(&mut letter).filter(|c| *c != '<' && *c != '&').collect();
        let status = format!("<status status='FAIL'>Suite teardown failed:\n{message}</status>");
        format!("<robot><suite name='Shop'>{tests}{status}</suite></robot>").into_bytes()
    }

    #[tokio::test]
    async fn failures_of_suites_count_against_the_memory_of_the_customer_for_each_test() {
        let (intake, customer) = (Intake::new(8), CustomerId::new());
        let report = torn_down(500);
        assert!(report.len() < 40_000);
        let piece = Piece { chunk: report.into(), file: None, last: true };
        let options = Options { reporter: None, variant: "", is_partial: false };
        let parse = move |body, memory: &mut Memory| read(body, options, memory);
        let (report, memory) =
            intake.read(customer, stream::iter([Ok(piece)]), parse).await.unwrap();
        let outcome = |result: &Reported| result.attempt.outcome.result;
        assert!(report.results.iter().map(outcome).all(|result| result == TestResult::Failed));
        assert!(intake.reserve(customer, 5 << 20).now_or_never().is_none(), "1 of 6 MiB is held");
        drop(memory);
        assert!(intake.reserve(customer, 5 << 20).now_or_never().is_some());
    }

    #[tokio::test]
    async fn decompressed_attachments_count_against_the_memory_of_the_customer() {
        let (intake, customer) = (Intake::new(8), CustomerId::new());
        let archive = bomb(5);
        assert!(archive.len() < 20_000);
        let piece = Piece { chunk: archive.into(), file: None, last: true };
        let options = Options { reporter: None, variant: "", is_partial: false };
        let parse = move |body, memory: &mut Memory| read(body, options, memory);
        let read = intake.read(customer, stream::iter([Ok(piece)]), parse);
        let (report, memory) = read.await.unwrap();
        assert_eq!(report.attachments.len(), 5);
        assert!(intake.reserve(customer, 2 << 20).now_or_never().is_none(), "5 of 6 MiB are held");
        drop(memory);
        assert!(intake.reserve(customer, 2 << 20).now_or_never().is_some());
    }
}
