//! Reads XML files with bounded memory: the elements of some names as trees, and the others one event
//! after the other.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use anyhow::{Context, Result, anyhow, bail};
use quick_xml::{
    Reader, XmlVersion,
    encoding::DecodingReader,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};

/// Maximum depth of nested elements.
const DEEPEST: usize = 200;

/// Maximum size of the texts of one tree, in bytes.
const LARGEST: usize = 64 << 20;

/// An element with everything in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Element {
    pub(super) name: String,
    attributes: Vec<(String, String)>,
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

/// A part of a document.
pub(super) enum Part {
    /// The start of an element that is not read as a tree. It has no text and no children yet.
    Open(Element),
    /// An element of one of the names.
    Tree(Element),
    /// The end of an element that is not read as a tree.
    Close(String),
}

impl Element {
    pub(super) fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(other, _)| other == name);
        found.map_or("", |(_, value)| value)
    }

    pub(super) fn child(&self, name: &str) -> Option<&Self> {
        self.children.iter().find(|child| child.name == name)
    }

    /// Returns the text of a child; empty if there is none.
    pub(super) fn text_of(&self, name: &str) -> &str {
        self.child(name).map_or("", |child| child.text.trim())
    }
}

/// Calls `each` with the parts of a file. A failure has the line that it happened in.
pub(super) fn read(
    path: &Path,
    trees: &[&str],
    each: &mut dyn FnMut(Part) -> Result<()>,
) -> Result<()> {
    let mut position = 0;
    parse(path, trees, &mut position, each).map_err(|error| {
        let line = line(path, position).map_or(String::new(), |line| format!(", line {line}"));
        error.context(format!("{}{line}", path.display()))
    })
}

fn parse(
    path: &Path,
    trees: &[&str],
    position: &mut u64,
    each: &mut dyn FnMut(Part) -> Result<()>,
) -> Result<()> {
    let file = File::open(path).context("cannot be read")?;
    let text = DecodingReader::new(BufReader::with_capacity(1 << 16, file));
    let mut reader = Reader::from_reader(BufReader::new(text));
    reader.config_mut().expand_empty_elements = true;
    let (mut buffer, mut open) = (Vec::new(), Vec::<Element>::new());
    // The index of the outermost element that is read as a tree, and the size of its texts.
    let (mut tree, mut size, mut is_empty) = (None, 0, true);
    loop {
        buffer.clear();
        let event = reader.read_event_into(&mut buffer);
        *position = reader.buffer_position();
        let mut add = |open: &mut Vec<Element>, text: &str| {
            let (Some(_), Some(last)) = (tree, open.last_mut()) else { return Ok(()) };
            size += text.len();
            if size > LARGEST {
                bail!("an element has more than {} MiB", LARGEST >> 20);
            }
            last.text.push_str(text);
            Ok(())
        };
        match event.context("the XML is broken")? {
            Event::Start(start) => {
                is_empty = false;
                if open.len() == DEEPEST {
                    bail!("elements must not be nested more than {DEEPEST} deep");
                }
                let element = element(&start);
                if tree.is_none() && trees.contains(&element.name.as_str()) {
                    (tree, size) = (Some(open.len()), 0);
                } else if tree.is_none() {
                    each(Part::Open(element.clone()))?;
                }
                open.push(element);
            }
            Event::End(_) => {
                let Some(element) = open.pop() else { bail!("an element ends that has not begun") };
                match tree {
                    Some(index) if index == open.len() => {
                        tree = None;
                        each(Part::Tree(element))?;
                    }
                    Some(_) => open.last_mut().map_or((), |parent| parent.children.push(element)),
                    None => each(Part::Close(element.name))?,
                }
            }
            Event::Text(text) => add(&mut open, &text.xml10_content())?,
            Event::CData(text) => add(&mut open, &text.xml10_content())?,
            Event::GeneralRef(reference) => {
                let character = reference.resolve_char_ref().ok().flatten().map(String::from);
                let text = character
                    .or_else(|| resolve_predefined_entity(&reference).map(str::to_owned))
                    .ok_or_else(|| anyhow!("the XML has an unknown entity"))?;
                add(&mut open, &text)?;
            }
            Event::DocType(doctype) if doctype.contains("<!ENTITY") => {
                bail!("the XML must not declare entities")
            }
            Event::Eof if is_empty => bail!("the file has no XML"),
            Event::Eof if !open.is_empty() => {
                bail!("the file ends before its last element is closed")
            }
            Event::Eof => return Ok(()),
            _ => {}
        }
    }
}

fn element(start: &BytesStart<'_>) -> Element {
    let name = start.local_name().as_ref().to_owned();
    let mut element = Element { name, ..Element::default() };
    for attribute in start.attributes().with_checks(false).flatten() {
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.unwrap_or_else(|_| attribute.value.clone());
        let name = attribute.key.local_name().as_ref().to_owned();
        element.attributes.push((name, value.into_owned()));
    }
    element
}

/// Returns the number of the line at a position of a file.
fn line(path: &Path, position: u64) -> Option<u64> {
    let mut file = BufReader::new(File::open(path).ok()?.take(position));
    let mut lines = 1;
    loop {
        let bytes = file.fill_buf().ok()?;
        if bytes.is_empty() {
            return Some(lines);
        }
        lines += bytes.split(|byte| *byte == b'\n').count() as u64 - 1;
        let count = bytes.len();
        file.consume(count);
    }
}

/// Returns the text of HTML: a line for each paragraph and item of a list.
pub(super) fn plain(html: &str) -> String {
    if !html.contains(['<', '&']) {
        return html.trim().to_owned();
    }
    let (mut text, mut rest) = (String::with_capacity(html.len()), html);
    while let Some(start) = rest.find('<') {
        text.push_str(&rest[..start]);
        let Some(end) = rest[start..].find('>') else {
            rest = &rest[start..];
            break;
        };
        let tag = rest[start + 1..start + end].trim_start().to_ascii_lowercase();
        let name = tag.trim_end_matches('/').split_whitespace().next().unwrap_or_default();
        match name {
            "br" | "/p" | "/div" | "/tr" | "/li" | "/ul" | "/ol" if !text.ends_with('\n') => {
                text.push('\n');
            }
            "li" => text.push_str("- "),
            "/td" | "/th" => text.push('\t'),
            _ => {}
        }
        rest = &rest[start + end + 1..];
    }
    text.push_str(rest);
    let text = [("&nbsp;", " "), ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'")]
        .iter()
        .fold(text, |text, (entity, character)| text.replace(entity, character))
        .replace("&amp;", "&");
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    lines.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn some_elements_are_trees_and_the_others_events() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.xml");
        fs::write(
            &file,
            "<suite id='1'><case><id>C1</id><custom><a>x &amp; <![CDATA[<y>]]></a></custom></case>\
             <section/></suite>",
        )
        .unwrap();
        let mut parts = Vec::new();
        read(&file, &["case"], &mut |part| {
            parts.push(match part {
                Part::Open(element) => format!("<{} {}", element.name, element.attribute("id")),
                Part::Tree(case) => {
                    format!("{} {}", case.text_of("id"), case.child("custom").unwrap().text_of("a"))
                }
                Part::Close(name) => format!("/{name}"),
            });
            Ok(())
        })
        .unwrap();
        assert_eq!(parts, ["<suite 1", "C1 x & <y>", "<section ", "/section", "/suite"]);
    }

    #[test]
    fn a_broken_file_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.xml");
        for (text, expected) in [
            ("<a>\n<b>\n</c></a>", "a.xml, line 3"),
            ("<a>\n<b>", "ends before its last element is closed"),
            ("<a>\n&other;</a>", "unknown entity"),
            ("", "has no XML"),
        ] {
            fs::write(&file, text).unwrap();
            let error = read(&file, &["a"], &mut |_| Ok(())).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn html_becomes_lines_of_text() {
        assert_eq!(
            plain("<p>Open &quot;main&quot;</p>\n<ul><li>a</li><li>b</li></ul>"),
            "Open \"main\"\n\n- a\n- b"
        );
        assert_eq!(plain(" 1 < 2 "), "1 < 2");
    }
}
