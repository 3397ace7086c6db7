//! Parses the rows of an import, in any of its formats.

use std::{collections::HashMap, io::BufRead};

use assay_proto::{
    Fault,
    catalog::{
        ImportFormat, ImportTestCasesTarget, TestCaseInput, TestCaseRowInput, TestPlanRowInput,
    },
    is_formula,
};
use assay_records::{Check, elements};
use assay_rpc::body::Memory;
use assay_weight::HEAVIEST;
use csv::{ErrorKind, ReaderBuilder, StringRecord};
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Maximum number of rows in an import.
const MOST_ROWS: usize = 10_000;

/// Maximum number of plans of a row.
const MOST_PLANS: usize = 100;

/// The fields of a row. Others are ignored, such as further columns of an export.
const FIELDS: [&str; 3] = ["Identifier", "Name", "Description"];

/// The byte order mark that some programs put at the start of UTF-8 files.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A row, and the names of its fields.
#[derive(Default)]
pub(super) struct Row {
    pub(super) input: TestCaseInput,
    pub(super) fields: Vec<String>,
    /// The plans of a test case that has none.
    pub(super) plans: Vec<TestPlanRowInput>,
}

/// Parses all rows, and acquires memory for each before. Fails with all violations at once.
pub(super) fn read(
    body: impl BufRead,
    target: &ImportTestCasesTarget,
    memory: &mut Memory,
) -> Result<Vec<Row>, Fault> {
    let mut rows = Rows { is_exact: target.exact, ..Rows::new(memory) };
    let format = target.format();
    if format == ImportFormat::Csv {
        read_csv(body, &mut rows)?;
    } else {
        let lines = format == ImportFormat::Ndjson;
        elements::read(body, lines, |row, weight| rows.add_json(row, weight))?;
    }
    rows.check.done().map(|()| rows.parsed)
}

struct Rows<'m> {
    parsed: Vec<Row>,
    check: Check,
    /// Whether the cells of CSV are used unchanged.
    is_exact: bool,
    /// Weight of the rows so far, in bytes.
    weight: usize,
    memory: &'m mut Memory,
}

impl<'m> Rows<'m> {
    fn new(memory: &'m mut Memory) -> Self {
        Self { parsed: Vec::new(), check: Check::default(), is_exact: false, weight: 0, memory }
    }

    /// Acquires memory for the values of a row. Fails if the import has too many.
    fn acquire(&mut self, weight: usize) -> Result<(), Fault> {
        self.weight += weight;
        if self.weight > HEAVIEST {
            let reason =
                "the import has too many objects and values: send fewer rows in one request";
            return Err(Fault::Refused { code: "too_large", reason: reason.to_owned() });
        }
        self.memory.grow(weight)
    }

    /// Returns the index of the next row. Fails if there are too many rows.
    fn next(&self) -> Result<usize, Fault> {
        if self.parsed.len() < MOST_ROWS {
            return Ok(self.parsed.len());
        }
        Err(Fault::invalid("", format!("must have at most {MOST_ROWS} test cases")))
    }

    #[expect(clippy::zero_sized_map_values, reason = "only the names of the fields are read")]
    fn add_json(&mut self, json: &RawValue, weight: usize) -> Result<(), Fault> {
        let index = self.next()?;
        self.acquire(weight)?;
        let row = elements::parse::<HashMap<String, IgnoredAny>>(json, index)
            .and_then(|fields| Ok((elements::parse::<TestCaseRowInput>(json, index)?, fields)));
        let row = row.map(|(row, fields)| {
            let has = |name: &&&str| fields.contains_key(**name);
            let fields = FIELDS.iter().filter(has).map(|name| (*name).to_owned()).collect();
            let TestCaseRowInput { name, description, identifier, test_plans: plans } = row;
            let input = TestCaseInput { name, description, identifier, ..TestCaseInput::default() };
            Row { input, fields, plans }
        });
        if let Ok(row) = &row
            && row.plans.len() > MOST_PLANS
        {
            let problem = format!("must be at most {MOST_PLANS}");
            self.check.refuse(format!("{index}/TestPlans"), problem);
        }
        self.parsed.push(row.unwrap_or_else(|violation| {
            self.check.refuse(violation.field, violation.problem);
            Row::default()
        }));
        Ok(())
    }

    fn add_csv(&mut self, header: &[Option<&str>], record: &StringRecord) -> Result<(), Fault> {
        let index = self.next()?;
        self.acquire(size_of::<Row>())?;
        if record.len() != header.len() {
            let problem = format!("has {} fields, the header has {}", record.len(), header.len());
            self.check.refuse(index.to_string(), problem);
        }
        let mut row = Row::default();
        for (name, text) in header.iter().zip(record) {
            let Some(name) = name else { continue };
            let text = if self.is_exact { text } else { without_apostrophe(text) };
            match *name {
                "Identifier" => row.input.identifier = Some(text.to_owned()),
                "Name" => text.clone_into(&mut row.input.name),
                _ => text.clone_into(&mut row.input.description),
            }
            row.fields.push((*name).to_owned());
        }
        self.parsed.push(row);
        Ok(())
    }
}

fn read_csv(mut body: impl BufRead, rows: &mut Rows<'_>) -> Result<(), Fault> {
    let start = body.fill_buf().map_err(Fault::internal)?;
    if start.starts_with(BYTE_ORDER_MARK) {
        body.consume(BYTE_ORDER_MARK.len());
    }
    let mut csv = ReaderBuilder::new().flexible(true).from_reader(body);
    let names = csv.headers().map_err(|error| malformed(&error))?.clone();
    // People write the names in upper or lower case.
    let known =
        |name: &str| FIELDS.into_iter().find(|field| field.eq_ignore_ascii_case(name.trim()));
    let header: Vec<Option<&str>> = names.iter().map(known).collect();
    for field in FIELDS {
        if header.iter().filter(|name| **name == Some(field)).count() > 1 {
            return Err(Fault::Malformed(format!("the header names {field} more than once")));
        }
    }
    if !header.iter().any(|name| matches!(name, Some("Identifier" | "Name"))) {
        let reason = "the first line must name the columns: Identifier, Name, Description";
        return Err(Fault::Malformed(reason.to_owned()));
    }
    let mut record = StringRecord::new();
    while csv.read_record(&mut record).map_err(|error| malformed(&error))? {
        rows.add_csv(&header, &record)?;
    }
    Ok(())
}

/// Returns the text of a cell without the apostrophe that an export adds, so that a spreadsheet does not
/// run the text as a formula.
fn without_apostrophe(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| is_formula(rest)).unwrap_or(cell)
}

fn malformed(error: &csv::Error) -> Fault {
    let line = error.position().map_or(1, csv::Position::line);
    Fault::Malformed(match error.kind() {
        ErrorKind::Utf8 { .. } => {
            format!("the record that begins in line {line} is not valid UTF-8")
        }
        ErrorKind::Io(_) => "the body is incomplete".to_owned(),
        _ => format!("the body is not valid CSV from line {line} on"),
    })
}

#[cfg(test)]
mod tests {
    use assay_proto::CustomerId;
    use assay_rpc::body::Intake;
    use tokio::task::spawn_blocking;

    use super::*;

    type Parsed = (Option<String>, String, String, Vec<String>);

    fn target(format: ImportFormat) -> ImportTestCasesTarget {
        ImportTestCasesTarget { format: format.into(), ..ImportTestCasesTarget::default() }
    }

    /// Reads the rows of a body on a thread, as the service does.
    fn read_all(body: &[u8], target: &ImportTestCasesTarget) -> Result<Vec<Row>, Fault> {
        let runtime = tokio::runtime::Runtime::new().map_err(Fault::internal)?;
        let (body, target) = (body.to_vec(), target.clone());
        runtime.block_on(async {
            let mut memory = Intake::new(64).reserve(CustomerId::new(), 1).await?;
            let read = spawn_blocking(move || read(&body[..], &target, &mut memory));
            read.await.map_err(Fault::internal)?
        })
    }

    fn parsed(body: &str, format: ImportFormat) -> Vec<Parsed> {
        let rows = read_all(body.as_bytes(), &target(format)).unwrap();
        let rows = rows.into_iter().map(|Row { input, fields, .. }| {
            (input.identifier, input.name, input.description, fields)
        });
        rows.collect()
    }

    #[test]
    fn rows_are_equal_in_every_format() {
        let json = r#"[{"Identifier": "a", "Name": "A \"1\"", "Id": 7}, {"Name": "ü,\n"}]"#;
        let lines = "{\"Name\": \"A \\\"1\\\"\", \"Identifier\": \"a\"}\n{\"Name\": \"ü,\\n\"}\n";
        let first = (Some("a".to_owned()), "A \"1\"".to_owned(), String::new());
        let second = (None, "ü,\n".to_owned(), String::new());
        for (body, format) in [(json, ImportFormat::Json), (lines, ImportFormat::Ndjson)] {
            let rows = parsed(body, format);
            let rows: Vec<_> = rows.into_iter().map(|(a, b, c, _)| (a, b, c)).collect();
            assert_eq!(rows, [first.clone(), second.clone()]);
        }
        let csv = "\u{feff}name, IDENTIFIER,Id\r\n\"A \"\"1\"\"\",a,7\r\n\"ü,\n\",,\r\n";
        let rows = parsed(csv, ImportFormat::Csv);
        assert_eq!(rows[0].1, "A \"1\"");
        assert_eq!((rows[1].0.as_deref(), rows[1].1.as_str()), (Some(""), "ü,\n"));
        assert_eq!(rows[1].3, ["Name", "Identifier"]);
    }

    #[test]
    fn an_apostrophe_before_a_formula_is_removed_unless_the_import_is_exact() {
        let csv = "Name,Description\n'=1+1,'tis\n'-a,''@b\n=2,'\n'\u{ff1d}3,\"'\n=4\"\n";
        let names = |exact| {
            let target = ImportTestCasesTarget { exact, ..target(ImportFormat::Csv) };
            let rows = read_all(csv.as_bytes(), &target).unwrap();
            rows.into_iter().map(|row| (row.input.name, row.input.description)).collect::<Vec<_>>()
        };
        let rows = |rows: [(&str, &str); 4]| rows.map(|(a, b)| (a.to_owned(), b.to_owned()));
        let last = ("\u{ff1d}3", "\n=4");
        assert_eq!(names(false), rows([("=1+1", "'tis"), ("-a", "'@b"), ("=2", "'"), last]));
        let last = ("'\u{ff1d}3", "'\n=4");
        assert_eq!(names(true), rows([("'=1+1", "'tis"), ("'-a", "''@b"), ("=2", "'"), last]));
    }

    #[test]
    fn violations_of_all_rows_are_reported_at_once() {
        let body = r#"[{"Name": null}, 5, {"Name": "fits"}, {"Description": 5}, []]"#;
        let Err(Fault::Invalid(violations)) =
            read_all(body.as_bytes(), &target(ImportFormat::Json))
        else {
            panic!("the import should be rejected");
        };
        let fields: Vec<_> = violations.into_iter().map(|violation| violation.field).collect();
        assert_eq!(fields, ["0/Name", "1", "3/Description", "4"]);

        let csv = "Identifier,Name\na,A\nb\nc,C,more\n";
        let Err(Fault::Invalid(violations)) = read_all(csv.as_bytes(), &target(ImportFormat::Csv))
        else {
            panic!("the import should be rejected");
        };
        let fields: Vec<_> = violations.into_iter().map(|violation| violation.field).collect();
        assert_eq!(fields, ["1", "2"]);
    }

    #[test]
    fn malformed_imports_are_rejected() {
        for (body, format) in [
            (&b"[{\"Name\": \"A\"}"[..], ImportFormat::Json),
            (b"{\"Name\": }", ImportFormat::Ndjson),
            (b"", ImportFormat::Csv),
            (b"a,b\n1,2\n", ImportFormat::Csv),
            (b"Name,name\n1,2\n", ImportFormat::Csv),
            (b"Name\n\xff\n", ImportFormat::Csv),
        ] {
            let rejected = read_all(body, &target(format));
            assert!(matches!(rejected, Err(Fault::Malformed(_))), "{}", body.escape_ascii());
        }
        let endless = std::iter::repeat_n("{\"Name\": \"A\"}\n", MOST_ROWS + 1).collect::<String>();
        let rejected = read_all(endless.as_bytes(), &target(ImportFormat::Ndjson));
        assert!(matches!(rejected, Err(Fault::Invalid(_))));
    }

    #[test]
    fn an_import_of_many_empty_values_is_refused_before_they_are_parsed() {
        let plans = vec!["{}"; 60_000].join(",");
        let row = format!("{{\"Name\":\"A\",\"TestPlans\":[{plans}]}}\n");
        let refused = read_all(row.repeat(3).as_bytes(), &target(ImportFormat::Ndjson));
        assert!(matches!(refused, Err(Fault::Refused { code: "too_large", .. })), "too many plans");
    }
}
