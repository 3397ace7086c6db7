//! Pages as a PDF file.

use std::sync::Arc;

use bytes::Bytes;
use krilla::{
    Data, Document as Pdf, SerializeSettings,
    color::rgb,
    configure::{Accessibility, Archival, ConfigurationBuilder, PdfVersion},
    destination::XyzDestination,
    error::KrillaError,
    geom::{PathBuilder, Point, Rect, Size, Transform},
    image::Image,
    metadata::{DateTime, Metadata},
    outline::{Outline, OutlineNode},
    page::PageSettings,
    paint::Fill,
    surface::{Location, Surface},
    tagging::{Artifact, ArtifactType, ContentTag, Identifier, SpanTag},
};
use thiserror::Error;

use super::{
    font::{Fonts, Style},
    layout::{Heading, LaidOut},
    line::runs,
    place::{BOTTOM, Face, Item, MARGIN, PAGE},
    tag::tree,
};
use crate::{
    block::{Block, Document, Tone},
    color::Color,
    picture::{Format, Picture},
    text::line,
};

/// Why no file was written.
#[derive(Debug, Error)]
pub(super) enum Failed {
    /// A picture cannot be decoded: the figure with this number, from 0. The logo has the number after the last
    /// one.
    #[error("a picture cannot be decoded")]
    Picture(Option<usize>),
    /// The file would not conform to the standards.
    #[error("{0}")]
    Standard(String),
    #[error("{0}")]
    Other(String),
}

impl From<KrillaError> for Failed {
    fn from(error: KrillaError) -> Self {
        match error {
            KrillaError::Image(_, location, _) | KrillaError::SixteenBitImage(_, location) => {
                let number = location.and_then(|location| usize::try_from(location.get()).ok());
                Self::Picture(number.map(|number| number - 1))
            }
            KrillaError::Validation(errors) => {
                let first: Vec<_> = errors.iter().take(3).map(|(error, _)| error).collect();
                Self::Standard(format!("{first:?}"))
            }
            error => Self::Other(error.to_string()),
        }
    }
}

/// Writes the pages of a document. A file that `conforms` to PDF/UA-1 and PDF/A-2a is checked.
pub(super) fn write(
    document: &Document,
    fonts: &Fonts,
    laid_out: LaidOut,
    conforms: bool,
) -> Result<Vec<u8>, Failed> {
    let LaidOut { pages, tags, contents, headings } = laid_out;
    let mut configuration = ConfigurationBuilder::new().with_version(PdfVersion::Pdf17);
    if conforms {
        configuration = configuration
            .with_archival_validator(Archival::A2_A)
            .with_accessibility_validator(Accessibility::UA1);
    }
    let configuration =
        configuration.finish().map_err(|error| Failed::Other(format!("{error:?}")))?;
    let mut pdf =
        Pdf::new_with(SerializeSettings { configuration, ..SerializeSettings::default() });
    let mut writer = Writer { fonts, pictures: pictures(document), identifiers: Vec::new() };
    writer.identifiers.resize_with(contents, || None);
    let settings =
        PageSettings::from_wh(PAGE.0, PAGE.1).ok_or_else(|| Failed::Other("size".to_owned()))?;
    let count = pages.len();
    for (index, items) in pages.into_iter().enumerate() {
        let mut page = pdf.start_page_with(settings.clone());
        let mut surface = page.surface();
        for item in items {
            writer.item(&mut surface, item)?;
        }
        writer.footer(&mut surface, &format!("Page {} of {count}", index + 1));
        surface.finish();
        page.finish();
    }
    pdf.set_metadata(metadata(document));
    pdf.set_outline(outline(headings));
    pdf.set_tag_tree(tree(tags, &mut writer.identifiers));
    Ok(pdf.finish()?)
}

/// Returns the figures in their order, and then the logo.
fn pictures(document: &Document) -> Vec<&Picture> {
    let figures = document.blocks.iter().filter_map(|block| match block {
        Block::Figure { picture, .. } => Some(picture),
        _ => None,
    });
    figures.chain(&document.logo).collect()
}

struct Writer<'a> {
    fonts: &'a Fonts,
    pictures: Vec<&'a Picture>,
    /// Identifiers of the contents by their numbers.
    identifiers: Vec<Option<Identifier>>,
}

impl Writer<'_> {
    fn item(&mut self, surface: &mut Surface<'_>, item: Item) -> Result<(), Failed> {
        match item {
            Item::Text { at, face, text, content } => {
                let tag = match content {
                    Some(_) => ContentTag::Span(SpanTag::empty()),
                    None => {
                        ContentTag::Artifact(Artifact::with_kind(ArtifactType::PaginationOther))
                    }
                };
                let identifier = surface.start_tagged(tag);
                self.text(surface, at, face, &text);
                surface.end_tagged();
                self.identify(content, identifier);
            }
            Item::Bar { at, size, color } => {
                surface
                    .start_tagged(ContentTag::Artifact(Artifact::with_kind(ArtifactType::Layout)));
                bar(surface, at, size, color);
                surface.end_tagged();
            }
            Item::Picture { at, size, figure, content } => {
                let number = figure.unwrap_or(self.pictures.len().saturating_sub(1));
                let Some(picture) = self.pictures.get(number) else { return Ok(()) };
                let image = image(picture).map_err(|_| Failed::Picture(Some(number)))?;
                let identifier = surface.start_tagged(ContentTag::Other);
                if let Some(size) = Size::from_wh(size.0, size.1) {
                    surface.push_transform(&Transform::from_translate(at.0, at.1));
                    let location = u64::try_from(number + 1).ok().and_then(Location::new);
                    if let Some(location) = location {
                        surface.set_location(location);
                    }
                    surface.draw_image(image, size);
                    surface.reset_location();
                    surface.pop();
                }
                surface.end_tagged();
                self.identify(Some(content), identifier);
            }
        }
        Ok(())
    }

    fn identify(&mut self, content: Option<usize>, identifier: Identifier) {
        if let Some(place) = content.and_then(|content| self.identifiers.get_mut(content)) {
            *place = Some(identifier);
        }
    }

    fn footer(&self, surface: &mut Surface<'_>, text: &str) {
        let face = Face::of(Style::Sans, 7.5, Tone::Dim);
        surface.start_tagged(ContentTag::Artifact(Artifact::with_kind(ArtifactType::Footer)));
        self.text(surface, (MARGIN, BOTTOM + 24.0), face, text);
        surface.end_tagged();
    }

    /// Draws a line of text.
    fn text(&self, surface: &mut Surface<'_>, at: (f32, f32), face: Face, text: &str) {
        surface.set_fill(Some(fill(face.color)));
        let mut left = at.0;
        for run in runs(self.fonts, face.style, text) {
            let glyphs = self.fonts.glyphs(run.style, run.text, run.right_to_left);
            let width: f32 = glyphs.iter().map(|glyph| glyph.x_advance * face.size).sum();
            let (at, font) = (Point::from_xy(left, at.1), self.fonts.font(run.style));
            surface.draw_glyphs(at, &glyphs, font, run.text, face.size, false);
            left += width;
        }
    }
}

fn bar(surface: &mut Surface<'_>, at: (f32, f32), size: (f32, f32), color: Color) {
    let mut path = PathBuilder::new();
    if let Some(rect) = Rect::from_xywh(at.0, at.1, size.0, size.1) {
        path.push_rect(rect);
    }
    if let Some(path) = path.finish() {
        surface.set_fill(Some(fill(color)));
        surface.draw_path(&path);
    }
}

fn fill(Color(red, green, blue): Color) -> Fill {
    Fill { paint: rgb::Color::new(red, green, blue).into(), ..Fill::default() }
}

fn image(picture: &Picture) -> Result<Image, String> {
    let shared: Arc<dyn AsRef<[u8]> + Send + Sync> = Arc::new(Bytes::clone(&picture.bytes));
    let data = Data::from(shared);
    match picture.format {
        Format::Png => Image::from_png(data, false),
        Format::Jpeg => Image::from_jpeg(data, false),
    }
}

fn metadata(document: &Document) -> Metadata {
    let [year, rest @ ..] = document.time;
    let [month, day, hour, minute, second] =
        rest.map(|part| u8::try_from(part).unwrap_or_default());
    let time = DateTime::new(year).month(month).day(day).hour(hour).minute(minute).second(second);
    let title = line(&document.title, 500);
    // A title is required, whatever the document is about.
    let title = if title.is_empty() { "Test report".to_owned() } else { title };
    Metadata::new()
        .title(title)
        .language("en".to_owned())
        .creator("Assay".to_owned())
        .creation_date(time.utc_offset_hour(0).utc_offset_minute(0))
}

/// Returns the outline: the headings of level 3 below those of level 2.
fn outline(headings: Vec<Heading>) -> Outline {
    let mut outline = Outline::new();
    let mut open: Option<OutlineNode> = None;
    for Heading { level, text, page, top } in headings {
        let node = OutlineNode::new(text, XyzDestination::new(page, Point::from_xy(MARGIN, top)));
        match &mut open {
            Some(parent) if level > 2 => parent.push_child(node),
            _ => {
                let before = open.replace(node);
                if let Some(before) = before {
                    outline.push_child(before);
                }
            }
        }
    }
    if let Some(last) = open {
        outline.push_child(last);
    }
    outline
}
