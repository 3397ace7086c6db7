//! Samples in which one place has as many small values as fit into the largest report. Parsed values take
//! many times their size.

use std::{
    alloc::System,
    collections::BTreeSet,
    io::{self, BufRead, Read},
};

use assay_formats::{Test, read};
use quick_xml::{Reader, events::Event};
use serde_json::{Value, json};
use stats_alloc::Region;

use super::ALLOCATOR;
use crate::samples::samples;

/// Stands for the place that is filled.
const PLACE: &str = "@@place@@";

/// Size of a report in an ordinary run, and in a long one, in bytes.
const SIZE: usize = 96 << 10;
const LARGEST: usize = 8 << 20;

/// Maximum memory of a reader for these sizes, in bytes. Readers hold a bounded amount, but not a multiple
/// of what they read.
const MEMORY: usize = 20 << 20;
const MOST_MEMORY: usize = 48 << 20;

/// Maximum number of places of a sample that are filled in an ordinary run, and in a long one.
const PLACES: usize = 3;
const MOST_PLACES: usize = 12;

/// A report with a place that is filled while it is read. `#` in the filler is the number of the value.
struct Filled<'f> {
    rest: Vec<&'f str>,
    filler: &'f str,
    part: Vec<u8>,
    read: usize,
    values: usize,
    left: usize,
    region: Region<'static, System>,
    peak: usize,
}

impl<'f> Filled<'f> {
    fn new(report: &'f str, filler: &'f str, size: usize) -> Self {
        let (before, after) = report.split_once(PLACE).unwrap();
        let part = before.as_bytes().to_vec();
        Self {
            rest: vec![after],
            filler,
            part,
            read: 0,
            values: 0,
            left: size,
            region: Region::new(ALLOCATOR),
            peak: 0,
        }
    }

    fn next_part(&mut self) -> Vec<u8> {
        let mut part = String::new();
        while self.left > 0 && part.len() < 16 << 10 {
            self.values += 1;
            let value = self.filler.replace('#', &self.values.to_string());
            self.left = self.left.saturating_sub(value.len());
            part.push_str(&value);
        }
        if part.is_empty() {
            part.push_str(self.rest.pop().unwrap_or_default());
        }
        part.into_bytes()
    }
}

impl BufRead for Filled<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let change = self.region.change();
        let used = change.bytes_allocated.saturating_sub(change.bytes_deallocated);
        self.peak = self.peak.max(used.saturating_sub(self.part.capacity()));
        if self.read == self.part.len() {
            (self.part, self.read) = (self.next_part(), 0);
        }
        Ok(&self.part[self.read..])
    }

    fn consume(&mut self, amount: usize) {
        self.read += amount;
    }
}

impl Read for Filled<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// Returns variants of a JSON document, each with one place to fill, and fillers for it.
fn of_json(text: &str) -> Vec<(String, Vec<String>)> {
    let Ok(document) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let (mut pointers, mut variants) = (Vec::new(), Vec::new());
    pointers_of(&document, "", &mut pointers);
    let mut seen = BTreeSet::new();
    for pointer in pointers {
        if !seen.insert(
            pointer
                .split('/')
                .filter(|part| part.parse::<usize>().is_err())
                .fold(String::new(), |path, part| path + "/" + part),
        ) {
            continue;
        }
        let mut filled = document.clone();
        let place = filled.pointer_mut(&pointer).unwrap();
        let (element, quoted) = match place {
            Value::Array(elements) => (elements.first().cloned(), format!("[\"{PLACE}\"]")),
            _ => (None, format!("[\"{PLACE}\"]")),
        };
        let members = place.is_object().then(|| json!({ PLACE: 0 }));
        *place = json!([PLACE]);
        let arrays = filled.to_string().replace(&quoted, &format!("[{PLACE} 0]"));
        let values =
            ["{}", "[]", "\"\"", "0", "[[],[{}]]", "{\"#\":{\"#\":[]}}"].map(str::to_owned);
        let values = values.into_iter().chain(element.map(|element| element.to_string()));
        variants.push((arrays, values.map(|value| value + ",").collect()));
        if let Some(members) = members {
            *filled.pointer_mut(&pointer).unwrap() = members;
            let text =
                filled.to_string().replace(&format!("\"{PLACE}\":0"), &format!("{PLACE} \"z\":0"));
            let values = ["\"#\":{},", "\"#\":\"\",", "\"#\":[0],"].map(str::to_owned);
            variants.push((text, values.into()));
        }
    }
    variants
}

fn pointers_of(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                pointers_of(element, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                pointers_of(member, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

/// Returns variants of an XML document: more elements in each kind of element, more of each kind, and
/// more attributes of it.
fn of_xml(text: &str) -> Vec<(String, Vec<String>)> {
    let mut reader = Reader::from_str(text);
    let (mut variants, mut seen, mut open) = (Vec::new(), BTreeSet::new(), Vec::new());
    loop {
        let start = usize::try_from(reader.buffer_position()).unwrap();
        let Ok(event) = reader.read_event() else { return Vec::new() };
        let end = usize::try_from(reader.buffer_position()).unwrap();
        match event {
            Event::Start(element) => {
                open.push((start, end, element.name().as_ref().to_owned()));
            }
            Event::End(_) => {
                let path =
                    open.iter().map(|(_, _, name)| name.as_str()).collect::<Vec<_>>().join("/");
                let (start, content, name) = open.pop().unwrap();
                if !seen.insert(path) || open.is_empty() {
                    continue;
                }
                let inside = format!("{}{PLACE}{}", &text[..content], &text[content..]);
                let nested = format!("<{name} name='#'/>");
                variants.push((inside, vec!["<x/>".to_owned(), nested, "x<!-- -->".to_owned()]));
                let behind = format!("{}{PLACE}{}", &text[..end], &text[end..]);
                let same = &text[start..end];
                if same.len() < 2000 && !same.contains('#') {
                    variants.push((behind, vec![same.to_owned(), format!("<{name}/>")]));
                }
                let tag = format!("{} {PLACE}{}", &text[..content - 1], &text[content - 1..]);
                variants.push((tag, vec!["a#='' ".to_owned()]));
            }
            Event::Eof => return variants,
            _ => {}
        }
    }
}

/// Returns variants of lines, of which each kind is repeated.
fn of_lines(text: &str) -> Vec<(String, Vec<String>)> {
    let mut seen = BTreeSet::new();
    let mut variants = Vec::new();
    for line in text.lines().filter(|line| line.len() < 2000 && !line.contains('#')) {
        let kind: String = line.chars().filter(|c| !c.is_ascii_digit()).take(24).collect();
        if seen.insert(kind) {
            let at = text.find(line).unwrap();
            let report = format!("{}{PLACE}{}", &text[..at], &text[at..]);
            let numbered = line.replacen(char::is_numeric, "#", 1);
            variants.push((report, vec![format!("{line}\n"), format!("{numbered}\n")]));
        }
    }
    variants
}

/// Fills places of samples. Returns those whose reader takes too much memory.
fn check(size: usize, most: usize, places: usize) -> String {
    let mut excesses = String::new();
    for sample in samples() {
        let Ok(text) = std::fs::read_to_string(&sample.path) else { continue };
        if text.len() > 64 << 10 {
            continue;
        }
        let variants = match text.trim_start().as_bytes().first() {
            Some(b'<') => of_xml(&text),
            Some(b'{' | b'[') if serde_json::from_str::<Value>(&text).is_ok() => of_json(&text),
            _ => of_lines(&text),
        };
        let step = variants.len().div_ceil(places).max(1);
        for (report, fillers) in variants.into_iter().step_by(step) {
            for filler in &fillers {
                let mut filled = Filled::new(&report, filler, size);
                let outcome = read(&mut filled, |_: Test| Ok(())).map(drop);
                let peak = filled.peak >> 10;
                if filled.peak > most {
                    let name = sample.path.file_name().unwrap().display();
                    let at = report.find(PLACE).unwrap();
                    let before = &report[report.floor_char_boundary(at.saturating_sub(90))..at];
                    let refused = outcome.err().map(|fault| fault.to_string()).unwrap_or_default();
                    let excess = format!(
                        "{}/{name}: {peak} KiB for {filler:.60} behind {before:?} {refused:.80}",
                        sample.format
                    );
                    // A long run shows what it finds.
                    println!("{excess}");
                    excesses = excesses + &excess + "\n";
                }
            }
        }
    }
    excesses
}

#[test]
fn small_values_do_not_take_much_memory() {
    let excesses = check(SIZE, MEMORY, PLACES);
    assert!(excesses.is_empty(), "{excesses}");
}

#[test]
#[ignore = "takes long: cargo nextest run -p assay-formats --profile long --run-ignored only"]
fn as_many_small_values_as_a_report_can_have_do_not_take_much_memory() {
    let excesses = check(LARGEST, MOST_MEMORY, MOST_PLACES);
    assert!(excesses.is_empty(), "{excesses}");
}
