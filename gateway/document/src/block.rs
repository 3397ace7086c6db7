//! A document: its parts in their order, without a format.

use crate::{color::Color, picture::Picture};

/// A document.
#[derive(Debug)]
pub struct Document {
    /// Title, which is also the first heading.
    pub title: String,
    /// Time of the execution as year, month, day, hour, minute and second in UTC.
    pub time: [u16; 6],
    /// Color of the line below the title.
    pub color: Color,
    /// Picture above the title.
    pub logo: Option<Picture>,
    pub blocks: Vec<Block>,
}

/// A part of a document.
#[derive(Debug)]
pub enum Block {
    /// Heading of level 2 or 3; the title has level 1.
    Heading {
        level: u8,
        text: String,
    },
    Paragraph(String),
    /// Remark that readers should see, such as a fault of the template.
    Note(String),
    /// Outcome in a few words.
    Badge {
        tone: Tone,
        text: String,
    },
    Table(Table),
    /// Text with its own line breaks, such as the output of a test.
    Text {
        label: String,
        tone: Tone,
        text: String,
    },
    Figure {
        picture: Picture,
        caption: String,
    },
}

/// A table. The first cell of each row is its header.
#[derive(Debug)]
pub struct Table {
    /// Description for readers who do not see the table.
    pub caption: String,
    pub columns: Vec<Column>,
    /// Rows with a cell for each column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    pub title: &'static str,
    /// Share of the width, relative to those of the other columns.
    pub weight: u16,
}

/// A cell of a table.
#[derive(Debug)]
pub struct Cell {
    pub text: String,
    /// Further text below it; empty if there is none.
    pub detail: String,
    pub tone: Tone,
}

impl Cell {
    /// A cell without a tone.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), detail: String::new(), tone: Tone::Plain }
    }
}

/// Meaning of a text. Its words have the same meaning, since not every reader sees colors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Tone {
    Pass,
    Fail,
    Warn,
    Dim,
    #[default]
    Plain,
}

impl Tone {
    /// Returns the name of the tone in style sheets.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Warn => "warn",
            Self::Dim => "dim",
            Self::Plain => "",
        }
    }

    /// Returns the color of the text. Its contrast with white is 4.5 at least.
    pub(crate) fn color(self) -> Color {
        match self {
            Self::Pass => Color(0x18, 0x7a, 0x47),
            Self::Fail => Color(0xb4, 0x23, 0x2a),
            Self::Warn => Color(0x8a, 0x5a, 0x00),
            Self::Dim => Color(0x59, 0x62, 0x6d),
            Self::Plain => Color(0x1c, 0x20, 0x24),
        }
    }
}
