//! The template of a project: order and presence of sections, texts, a color and a logo.
//!
//! A template is data. It has no loops, expressions, includes or functions, and placeholders stand for short texts
//! of a closed list. So the worst template adds its logo and less than 1 MiB of texts to a document.

mod placeholder;

use serde::Deserialize;
use thiserror::Error;

pub(crate) use self::placeholder::Text;
use crate::color::Color;

/// Maximum size of a template, in bytes.
pub const LARGEST_TEMPLATE: usize = 64 << 10;

/// Maximum number of characters of the title, and of each other text.
const TITLE: usize = 200;
const TEXT: usize = 8_000;

/// The choices of a project for its documents. The default has all sections.
#[derive(Debug, Default)]
pub struct Template {
    pub(crate) title: Option<Text>,
    pub(crate) introduction: Option<Text>,
    pub(crate) closing: Option<Text>,
    pub(crate) color: Color,
    /// Id of a file of the project with a PNG or JPEG picture.
    pub logo: Option<String>,
    pub(crate) sections: Option<Vec<Section>>,
}

/// A part of a document that a template can move or leave out.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub(crate) enum Section {
    Verdict,
    Facts,
    Counts,
    Causes,
    Tests,
    Failures,
}

impl Section {
    pub(crate) const ALL: [Self; 6] =
        [Self::Verdict, Self::Facts, Self::Counts, Self::Causes, Self::Failures, Self::Tests];
}

/// Fault of a template.
#[derive(Debug, Error, PartialEq)]
pub enum Fault {
    #[error("it is larger than 64 KiB")]
    Size,
    #[error("{0}")]
    Json(String),
    #[error("{field}: {problem}")]
    Field { field: &'static str, problem: String },
}

/// A template as it is written.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields, default)]
struct Written {
    title: Option<String>,
    introduction: Option<String>,
    closing: Option<String>,
    color: Option<String>,
    logo: Option<String>,
    sections: Option<Vec<Section>>,
}

impl Template {
    /// Reads a template, a JSON object.
    pub fn read(json: &[u8]) -> Result<Self, Fault> {
        if json.len() > LARGEST_TEMPLATE {
            return Err(Fault::Size);
        }
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        let mut reader = serde_json::Deserializer::from_slice(json);
        let written: Written = serde_path_to_error::deserialize(&mut reader)
            .map_err(|error| Fault::Json(crate::text::line(&error.to_string(), 500)))?;
        reader.end().map_err(|error| Fault::Json(error.to_string()))?;
        Self::of(written)
    }

    fn of(written: Written) -> Result<Self, Fault> {
        let Written { title, introduction, closing, color, logo, sections } = written;
        Ok(Self {
            title: text("Title", title, TITLE)?,
            introduction: text("Introduction", introduction, TEXT)?,
            closing: text("Closing", closing, TEXT)?,
            color: color.map(|color| parse_color(&color)).transpose()?.unwrap_or_default(),
            logo: logo.filter(|logo| !logo.is_empty()),
            sections: sections.map(without_repetition).transpose()?,
        })
    }
}

fn text(field: &'static str, text: Option<String>, most: usize) -> Result<Option<Text>, Fault> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    if text.chars().count() > most {
        return Err(Fault::Field {
            field,
            problem: format!("at most {most} characters are allowed"),
        });
    }
    Text::parse(&text).map(Some).map_err(|problem| Fault::Field { field, problem })
}

fn parse_color(color: &str) -> Result<Color, Fault> {
    let problem = || "must be # and six hexadecimal digits, such as #0b57b7".to_owned();
    Color::parse(color).ok_or_else(|| Fault::Field { field: "Color", problem: problem() })
}

fn without_repetition(sections: Vec<Section>) -> Result<Vec<Section>, Fault> {
    let is_repeated = |(index, section)| sections[..index].contains(section);
    if sections.iter().enumerate().any(is_repeated) {
        let problem = "a section may appear once".to_owned();
        return Err(Fault::Field { field: "Sections", problem });
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_chooses_sections_and_texts() {
        let template = Template::read(
            br##"{"Title": "{project}: {testSet}", "Color": "#102030", "Logo": "x",
                "Sections": ["Tests", "Verdict"]}"##,
        );
        let template = template.unwrap();
        assert_eq!(template.color, Color(0x10, 0x20, 0x30));
        assert_eq!(template.sections, Some(vec![Section::Tests, Section::Verdict]));
        assert_eq!(template.logo.as_deref(), Some("x"));
        assert!(template.title.is_some() && template.closing.is_none());
    }

    #[test]
    fn an_empty_template_is_the_default() {
        let template = Template::read(b"{}").unwrap();
        assert!(template.sections.is_none() && template.color == Color::default());
    }

    #[test]
    fn faults_name_the_field_and_the_rule() {
        let deep = format!("{{\"Title\": {}", "[".repeat(60_000));
        let long = format!("{{\"Title\": \"{}\"}}", "a".repeat(201));
        for (json, part) in [
            ("", "EOF"),
            ("{{ loop }}", "line 1"),
            ("{\"Include\": \"/etc/passwd\"}", "unknown field `Include`"),
            ("{\"Title\": 1}", "Title: invalid type"),
            ("{\"Title\": \"{secret}\"}", "Title: there is not a placeholder `{secret}`"),
            ("{\"Closing\": \"{project\"}", "Closing: `{` without `}`"),
            ("{\"Color\": \"red; background: url(x)\"}", "Color: must be #"),
            ("{\"Sections\": [\"Tests\", \"Tests\"]}", "Sections: a section may appear once"),
            ("{\"Sections\": [\"Secrets\"]}", "unknown variant `Secrets`"),
            ("{} {}", "trailing characters"),
            (&deep, "Title: invalid type"),
            (&long, "Title: at most 200 characters"),
        ] {
            let fault = Template::read(json.as_bytes()).unwrap_err().to_string();
            assert!(fault.contains(part), "{fault}");
        }
        assert_eq!(Template::read(&vec![b' '; LARGEST_TEMPLATE + 1]).unwrap_err(), Fault::Size);
    }
}
