//! Mutants of the samples: each element, attribute, member and line of them is removed, doubled, emptied
//! and moved behind the next one. Tools write reports that lack parts, and none of them may become
//! green by it.
//!
//! An ordinary run takes some places of each sample, and a long one takes all of them.

use std::{fs, ops::Range};

use assay_formats::{Collected, Test, read};
use assay_proto::{Fault, TestResult};
use quick_xml::{Reader, events::Event};

use crate::samples::samples;

/// Number of places of a sample that are changed in an ordinary run.
const PLACES: usize = 20;

/// Texts that state a failure, in all formats.
const EVIDENCE: [&str; 17] = [
    "<failure",
    "<error ",
    "<error>",
    "result=\"Failed\"",
    "result=\"Failure\"",
    "result=\"Fail\"",
    "outcome=\"Failed\"",
    "outcome=\"Error\"",
    "status=\"FAIL\"",
    "\nnot ok",
    "\"status\":\"failed\"",
    "\"status\": \"failed\"",
    "\"outcome\": \"failed\"",
    "\"status\":\"unexpected\"",
    "\"status\":\"FAILED\"",
    "\"Action\":\"fail\"",
    "\"status\":\"FAIL\"",
];

/// Directives by which a line with evidence does not fail its test.
const EXCUSES: [&str; 2] = ["# TODO", "# todo"];

fn tests(file: &str) -> Result<Vec<Test>, Fault> {
    let mut tests = Collected::default();
    read(file.as_bytes(), &mut tests)?;
    Ok(tests.into_tests())
}

fn is_red(tests: &[Test]) -> bool {
    let red = [TestResult::Failed, TestResult::Error, TestResult::Aborted];
    tests.iter().any(|test| red.contains(&test.result()))
}

fn has_evidence(file: &str) -> bool {
    file.split_inclusive('\n').collect::<Vec<_>>().windows(1).any(|lines| {
        let line = format!("\n{}", lines[0].trim_start());
        let is_excused = EXCUSES.iter().any(|excuse| line.contains(excuse));
        !is_excused && EVIDENCE.iter().any(|evidence| line.contains(evidence))
    })
}

/// A part of a file that can be changed, and the next one beside it.
struct Place {
    part: Range<usize>,
    /// Rest of the part when it is emptied.
    empty: String,
    next: Option<Range<usize>>,
}

/// Returns the lines of a file.
fn lines(file: &str) -> Vec<Place> {
    let mut end = 0;
    let parts: Vec<Range<usize>> = file
        .split_inclusive('\n')
        .map(|line| {
            end += line.len();
            end - line.len()..end
        })
        .collect();
    beside(&parts, |_| "\n".to_owned())
}

fn beside(parts: &[Range<usize>], empty: impl Fn(&Range<usize>) -> String) -> Vec<Place> {
    let place = |(index, part): (usize, &Range<usize>)| {
        let next = parts.get(index + 1).filter(|next| next.start >= part.end).cloned();
        Place { part: part.clone(), empty: empty(part), next }
    };
    parts.iter().enumerate().map(place).collect()
}

/// Returns the elements and attributes of an XML file.
fn elements(file: &str) -> Vec<Place> {
    let mut reader = Reader::from_str(file);
    let (mut open, mut found, mut attributes) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let start = position(&reader);
        match reader.read_event() {
            Ok(Event::Start(_)) => open.push((start, position(&reader))),
            Ok(Event::Empty(_)) => {
                found.push((start..position(&reader), String::new()));
            }
            Ok(Event::End(_)) => {
                let Some((begin, inner)) = open.pop() else { break };
                let tags = format!("{}{}", &file[begin..inner], &file[start..position(&reader)]);
                found.push((begin..position(&reader), tags));
            }
            Ok(Event::Eof) | Err(_) => break,
            Ok(_) => {}
        }
        attributes.extend(attributes_in(file, start..position(&reader)));
    }
    found.sort_by_key(|(part, _)| part.start);
    let parts: Vec<Range<usize>> = found.iter().map(|(part, _)| part.clone()).collect();
    let mut places = beside(&parts, |_| String::new());
    for (place, (_, empty)) in places.iter_mut().zip(found) {
        place.empty = empty;
        // The next one within the same parent begins where this one ends.
        place.next = parts.iter().find(|part| part.start >= place.part.end).cloned();
    }
    places.extend(beside(&attributes, |part| {
        let name = file[part.clone()].split('=').next().unwrap_or_default().to_owned();
        name + "=\"\""
    }));
    places
}

fn position(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap()
}

/// Returns the attributes of a tag, each with the space in front of it.
fn attributes_in(file: &str, tag: Range<usize>) -> Vec<Range<usize>> {
    let text = &file[tag.clone()];
    if !text.starts_with('<') || text.starts_with("<!") || text.starts_with("<?") {
        return Vec::new();
    }
    let (mut found, mut rest) = (Vec::new(), 0);
    while let Some(equals) = text[rest..].find('=').map(|at| rest + at) {
        let Some(quote) = text[equals + 1..].chars().next().filter(|c| ['"', '\''].contains(c))
        else {
            break;
        };
        let Some(end) = text[equals + 2..].find(quote).map(|at| equals + 2 + at + 1) else { break };
        let Some(start) = text[..equals].rfind(char::is_whitespace) else { break };
        found.push(tag.start + start..tag.start + end);
        rest = end;
    }
    found
}

/// Returns the members of objects and the elements of arrays of a JSON file, each with the comma behind
/// it.
fn members(file: &str) -> Vec<Place> {
    let (mut parts, mut open, mut is_text, mut is_escaped) = (Vec::new(), Vec::new(), false, false);
    for (position, char) in file.char_indices() {
        match char {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            _ if is_text => {}
            '{' | '[' => open.push(position + 1),
            ',' | '}' | ']' => {
                if let Some(start) = open.last_mut() {
                    let end = if char == ',' { position + 1 } else { position };
                    if file[*start..end].trim().len() > 1 {
                        parts.push(*start..end);
                    }
                    *start = position + 1;
                }
                if char != ',' {
                    open.pop();
                }
            }
            _ => {}
        }
    }
    parts.sort_by_key(|part| part.start);
    beside(&parts, |part| {
        let text = &file[part.clone()];
        let comma = if text.trim_end().ends_with(',') { "," } else { "" };
        match text.split_once("\": ").or_else(|| text.split_once("\":")) {
            Some((name, _)) if !name.contains(['{', '[']) => format!("{name}\": null{comma}"),
            _ => format!("null{comma}"),
        }
    })
}

/// Returns the mutants of a file at a place.
fn mutants(file: &str, place: &Place) -> Vec<String> {
    let Place { part, empty, next } = place;
    let (before, text, after) = (&file[..part.start], &file[part.clone()], &file[part.end..]);
    let mut mutants = vec![
        [before, after].concat(),
        [before, text, text, after].concat(),
        [before, empty, after].concat(),
    ];
    if let Some(next) = next {
        let (between, moved) = (&file[part.end..next.start], &file[next.clone()]);
        mutants.push([before, moved, between, text, &file[next.end..]].concat());
    }
    mutants
}

/// Reads the mutants of about this many places of each sample.
fn check(most: usize) {
    let (mut total, mut green) = (0, Vec::new());
    for sample in samples().into_iter().filter(|sample| sample.path.is_file()) {
        let Ok(file) = fs::read_to_string(&sample.path) else { continue };
        if !tests(&file).is_ok_and(|tests| is_red(&tests)) {
            continue;
        }
        let places = match file.trim_start_matches('\u{feff}').as_bytes() {
            [b'<', ..] => elements(&file),
            [b'[' | b'{', ..] if file.trim_end().lines().count() == 1 => members(&file),
            _ => lines(&file),
        };
        let step = (places.len() / most).max(1);
        for place in places.iter().step_by(step) {
            for mutant in mutants(&file, place) {
                total += 1;
                match tests(&mutant) {
                    // A report without tests is refused.
                    Ok(tests) if tests.is_empty() => {}
                    Ok(tests) if !is_red(&tests) && has_evidence(&mutant) => {
                        let part = &file[place.part.clone()];
                        green.push(format!("{}: {part:.200}", sample.path.display()));
                    }
                    Ok(_) | Err(Fault::Malformed(_) | Fault::Refused { .. }) => {}
                    Err(fault) => panic!("{}: {fault:?}", sample.path.display()),
                }
            }
        }
    }
    println!("{total} mutants");
    assert!(green.is_empty(), "{} of {total} mutants are green: {green:#?}", green.len());
}

#[test]
fn mutants_of_red_samples_are_not_green() {
    check(PLACES);
}

#[test]
#[ignore = "takes minutes: cargo nextest run -p assay-formats --profile long --run-ignored only"]
fn all_mutants_of_red_samples_are_not_green() {
    check(usize::MAX);
}
