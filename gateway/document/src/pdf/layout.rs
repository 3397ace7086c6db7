//! Pages: a simple flow of blocks, each below the one before.

use std::{num::NonZeroU16, time::Instant};

use krilla::tagging::{BBox, Tag};

use super::{
    PAGES,
    flow::Flow,
    font::{Fonts, Style},
    place::{Face, Item, MARGIN, WIDTH},
    table,
    tag::Tagged,
};
use crate::{
    block::{Block, Document, Tone},
    color::Color,
    picture::Picture,
    text::line,
};

const SOFT: Color = Color(0x8a, 0x93, 0x9d);

/// Maximum height of a picture, and of the logo.
const PICTURE: f32 = 330.0;
const LOGO: (f32, f32) = (160.0, 48.0);

/// Maximum size of the name of a heading in the tags and the outline, in bytes.
const NAME: usize = 200;

/// Pages with the tree of their tags.
pub(super) struct LaidOut {
    pub(super) pages: Vec<Vec<Item>>,
    pub(super) tags: Vec<Tagged>,
    /// Number of contents in the tree.
    pub(super) contents: usize,
    pub(super) headings: Vec<Heading>,
}

/// A heading for the outline.
pub(super) struct Heading {
    pub(super) level: u8,
    pub(super) text: String,
    /// Index of the page, and the upper edge of the heading.
    pub(super) page: usize,
    pub(super) top: f32,
}

struct Layout<'a> {
    flow: Flow<'a>,
    headings: Vec<Heading>,
    figures: usize,
}

/// Breaks a document into pages, as many as there are until the deadline.
pub(super) fn layout(document: &Document, fonts: &Fonts, deadline: Instant) -> LaidOut {
    let flow = Flow::new(fonts, PAGES - 1, deadline);
    let mut layout = Layout { flow, headings: Vec::new(), figures: 0 };
    let mut tags = layout.title(document);
    for block in &document.blocks {
        if layout.flow.is_full {
            break;
        }
        tags.extend(layout.block(block));
    }
    if layout.flow.is_full {
        let last = layout.flow.extend();
        let rest = format!("The document ends after {last} pages. The HTML document has the rest.");
        tags.push(layout.note(&rest));
    }
    let (pages, contents) = layout.flow.finish();
    LaidOut { pages, tags, contents, headings: layout.headings }
}

impl Layout<'_> {
    fn title(&mut self, document: &Document) -> Vec<Tagged> {
        let mut tags = Vec::new();
        if let Some(logo) = &document.logo {
            tags.push(self.picture(logo, "Logo", None, LOGO));
            self.flow.top += 8.0;
        }
        let title = line(&document.title, NAME);
        self.headings.push(Heading { level: 1, text: title.clone(), page: 0, top: self.flow.top });
        let contents =
            self.flow.text(&document.title, Face::of(Style::Bold, 18.0, Tone::Plain), 0.0);
        tags.push(Tagged::group(Tag::Hn(level(1), Some(title)), contents));
        self.flow.top += 4.0;
        self.flow.put(Item::Bar {
            at: (MARGIN, self.flow.top),
            size: (WIDTH, 3.0),
            color: document.color,
        });
        self.flow.top += 11.0;
        tags
    }

    fn block(&mut self, block: &Block) -> Vec<Tagged> {
        match block {
            Block::Heading { level, text } => vec![self.heading(*level, text)],
            Block::Paragraph(text) => {
                let contents = self.flow.text(text, Face::of(Style::Sans, 9.5, Tone::Plain), 0.0);
                self.flow.top += 5.0;
                vec![Tagged::group(Tag::P, contents)]
            }
            Block::Note(text) => vec![self.note(text)],
            Block::Badge { tone, text } => {
                self.flow.top += 3.0;
                let bar = tone.color();
                let contents =
                    self.flow.text_beside_bar(text, Face::of(Style::Bold, 9.5, *tone), bar);
                self.flow.top += 5.0;
                vec![Tagged::group(Tag::P, contents)]
            }
            Block::Text { label, tone, text } => self.output(label, *tone, text),
            Block::Figure { picture, caption } => self.figure(picture, caption),
            Block::Table(table) => vec![table::table(&mut self.flow, table)],
        }
    }

    fn heading(&mut self, of_level: u8, text: &str) -> Tagged {
        let face = Face::of(Style::Bold, if of_level == 2 { 13.0 } else { 10.5 }, Tone::Plain);
        self.flow.top += if of_level == 2 { 14.0 } else { 8.0 };
        // A heading does not stand alone at the end of a page.
        self.flow.reserve(face.leading() + 60.0);
        let name = line(text, NAME);
        let page = self.flow.page();
        self.headings.push(Heading {
            level: of_level,
            text: name.clone(),
            page,
            top: self.flow.top,
        });
        let contents = self.flow.text(text, face, 0.0);
        self.flow.top += 3.0;
        Tagged::group(Tag::Hn(level(of_level), Some(name)), contents)
    }

    fn note(&mut self, text: &str) -> Tagged {
        let (face, bar) = (Face::of(Style::Sans, 9.0, Tone::Plain), Tone::Warn.color());
        let contents = self.flow.text_beside_bar(&format!("Note: {text}"), face, bar);
        self.flow.top += 5.0;
        Tagged::group(Tag::P, contents)
    }

    fn output(&mut self, label: &str, tone: Tone, text: &str) -> Vec<Tagged> {
        let label_face = Face::of(Style::Bold, 7.5, Tone::Dim);
        let text_face = Face::of(Style::Mono, 8.0, Tone::Plain);
        self.flow.reserve(label_face.leading() + 2.0 * text_face.leading());
        let label = self.flow.text(label, label_face, 0.0);
        let bar = if tone == Tone::Fail { tone.color() } else { SOFT };
        let contents = self.flow.text_beside_bar(text, text_face, bar);
        self.flow.top += 5.0;
        let code = Tagged::group(Tag::Code, contents);
        vec![Tagged::group(Tag::P, label), Tagged::group(Tag::P, vec![code])]
    }

    fn figure(&mut self, picture: &Picture, caption: &str) -> Vec<Tagged> {
        let figure = self.figures;
        self.figures += 1;
        let caption_face = Face::of(Style::Bold, 7.5, Tone::Dim);
        let height = fitted(picture, (WIDTH, PICTURE)).1 + 3.0 + caption_face.leading();
        if !self.flow.reserve(height) {
            return Vec::new();
        }
        let picture = self.picture(picture, caption, Some(figure), (WIDTH, PICTURE));
        self.flow.top += 3.0;
        let caption = self.flow.text(caption, caption_face, 0.0);
        self.flow.top += 6.0;
        vec![picture, Tagged::group(Tag::Caption, caption)]
    }

    /// Puts a picture at the left, at most as large as `most`.
    fn picture(
        &mut self,
        picture: &Picture,
        text: &str,
        figure: Option<usize>,
        most: (f32, f32),
    ) -> Tagged {
        let (at, size) = ((MARGIN, self.flow.top), fitted(picture, most));
        let content = self.flow.content();
        self.flow.put(Item::Picture { at, size, figure, content });
        self.flow.top += size.1;
        let frame = krilla::geom::Rect::from_xywh(at.0, at.1, size.0, size.1);
        let frame = frame.map(|frame| BBox::new(self.flow.page(), frame));
        Tagged::group(
            Tag::Figure(Some(text.to_owned())).with_bbox(frame),
            vec![Tagged::Content(content)],
        )
    }
}

/// Returns the size of a picture on a page: as on a screen, unless that is too large.
#[expect(clippy::cast_precision_loss, reason = "pictures have fewer than 2^24 pixels on a side")]
fn fitted(picture: &Picture, most: (f32, f32)) -> (f32, f32) {
    let size = (picture.size.0 as f32 * 0.75, picture.size.1 as f32 * 0.75);
    let scale = (most.0 / size.0).min(most.1 / size.1).min(1.0);
    // A picture with one very long side stays visible.
    ((size.0 * scale).max(1.0), (size.1 * scale).max(1.0))
}

fn level(level: u8) -> NonZeroU16 {
    NonZeroU16::new(level.into()).unwrap_or(NonZeroU16::MIN)
}
