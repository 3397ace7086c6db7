//! Documents as PDF: tagged, by PDF/UA-1 and PDF/A-2a.
//!
//! [`layout`] breaks the document into pages, which are lists of texts, lines and pictures at their places, and makes
//! the tree of tags. [`write`] turns both into a file. So a page knows how many there are.

mod flow;
mod font;
mod layout;
mod line;
mod place;
mod table;
mod tag;
mod write;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use thiserror::Error;

use self::{
    font::Fonts,
    layout::layout,
    write::{Failed, write},
};
use crate::{
    block::{Block, Document},
    picture::Picture,
};

/// Maximum number of pages.
const PAGES: usize = 200;

/// Maximum size of the pixels that are compressed again, in bytes. A file has them without the filters of PNG, by which
/// a small picture can stand for megabytes that cannot be compressed.
const PIXELS: u64 = 96 << 20;

/// Maximum number of pictures that cannot be decoded and are replaced one by one. With more, or once half of the time
/// has passed, all are.
const BROKEN: usize = 3;

/// A document cannot be rendered as PDF. No content should cause this.
#[derive(Debug, Error)]
#[error("the document cannot be written as PDF: {0}")]
pub struct Unrenderable(String);

/// A document as PDF.
#[derive(Debug)]
pub struct Pdf {
    pub file: Vec<u8>,
    /// Why the file does not declare that it conforms to the standards. No content should cause this.
    pub nonconformance: Option<String>,
}

/// Returns the document as a PDF file.
///
/// It has the pages that can be laid out within half of `time`; writing their texts takes about as long. It takes
/// memory for the file twice and for the pixels of one picture. PNG pictures beyond 96 MiB of pixels are left out. Texts
/// in scripts that the fonts do not have are shown as replacement characters.
///
/// A picture that cannot be decoded is replaced by a remark, and the document is laid out again. All passes share
/// `time`: a further one has half of what is left, and so maybe fewer pages. Its last page says so.
pub fn pdf(mut document: Document, time: Duration) -> Result<Pdf, Unrenderable> {
    let fonts = Fonts::load().ok_or_else(|| Unrenderable("the fonts cannot be read".to_owned()))?;
    leave_out_pictures(&mut document);
    let begin = Instant::now();
    let (half, end) = (begin + time / 2, begin + time);
    let (mut nonconformance, mut broken) = (None, 0);
    loop {
        let laid_out = layout(&document, &fonts, end_of_pass(Instant::now(), end));
        let conforms = nonconformance.is_none();
        // Decoders of pictures are the only code here that reads bytes of clients.
        let written =
            catch_unwind(AssertUnwindSafe(|| write(&document, &fonts, laid_out, conforms)));
        match written.unwrap_or(Err(Failed::Picture(None))) {
            Ok(file) => return Ok(Pdf { file, nonconformance }),
            Err(Failed::Picture(number)) if broken <= BROKEN => {
                let number = number.filter(|_| broken < BROKEN && Instant::now() < half);
                replace_pictures(&mut document, number);
                broken += 1;
            }
            Err(Failed::Standard(reason)) if conforms => nonconformance = Some(reason),
            Err(failed) => return Err(Unrenderable(failed.to_string())),
        }
    }
}

/// Returns when a pass that begins now ends its layout: after half of the time that is left.
fn end_of_pass(now: Instant, end: Instant) -> Instant {
    now + end.saturating_duration_since(now) / 2
}

/// Replaces the figures by remarks that have more pixels than a file may still have.
fn leave_out_pictures(document: &mut Document) {
    let logo = document.logo.as_ref().map_or(0, Picture::compressed_again);
    let mut left = PIXELS.saturating_sub(logo);
    for block in &mut document.blocks {
        if let Block::Figure { picture, caption } = block {
            let size = picture.compressed_again();
            if size <= left {
                left -= size;
            } else {
                let reason = "left out of the PDF, which would have too many pixels";
                *block = Block::Note(format!("{caption}: {reason}."));
            }
        }
    }
}

/// Replaces the picture with this number by a remark, or all of them. The logo has the number after the last figure.
fn replace_pictures(document: &mut Document, broken: Option<usize>) {
    let is_replaced = |index| broken.is_none_or(|broken| broken == index);
    let reason = match broken {
        Some(_) => "the picture cannot be decoded",
        None => "left out of the PDF, because pictures of the report cannot be decoded",
    };
    let mut figures = 0;
    for block in &mut document.blocks {
        if let Block::Figure { caption, .. } = block {
            if is_replaced(figures) {
                *block = Block::Note(format!("{caption}: {reason}."));
            }
            figures += 1;
        }
    }
    if is_replaced(figures) {
        document.logo = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{place::Item, *};
    use crate::{
        block::Tone, compose, compose::tests::report, picture::Format, template::Template,
    };

    const TIME: Duration = Duration::from_mins(1);

    fn later() -> Instant {
        Instant::now() + TIME
    }

    fn document(text: &str) -> Document {
        compose(report(text), &Template::default(), None)
    }

    /// Returns the file of a document that conforms to the standards.
    fn conforming(document: Document) -> Vec<u8> {
        let Pdf { file, nonconformance } = pdf(document, TIME).unwrap();
        assert_eq!(nonconformance, None);
        file
    }

    fn has(file: &[u8], part: &str) -> bool {
        file.windows(part.len()).any(|window| window == part.as_bytes())
    }

    #[test]
    fn the_file_is_tagged_and_declares_what_it_conforms_to() {
        let file = conforming(document(""));
        assert!(file.starts_with(b"%PDF-1.7"));
        for part in ["pdfuaid:part", "pdfaid:conformance", "/MarkInfo", "/StructTreeRoot", "/Lang"]
        {
            assert!(has(&file, part), "{part}");
        }
    }

    #[test]
    fn no_text_makes_it_fail() {
        let mut texts: Vec<String> =
            ["", "\u{feff}", "漢字 😀 👩‍👩‍👧", "مرحبا بالعالم", "a\u{301}\u{488}", "ﷺﷺ"]
                .map(str::to_owned)
                .to_vec();
        // Every character of the first two planes, in texts of 512.
        let all: Vec<char> = ('\0'..='\u{1ffff}').collect();
        texts.extend(all.chunks(512).map(String::from_iter));
        let mut document = document("");
        for text in &texts {
            document.blocks.push(Block::Paragraph(text.clone()));
            document.blocks.push(Block::Text {
                label: text.clone(),
                tone: Tone::Fail,
                text: text.clone(),
            });
        }
        document.title = texts[..6].concat();
        conforming(document);
    }

    #[test]
    fn pages_are_bounded() {
        let mut document = document("");
        document.blocks.push(Block::Paragraph("word ".repeat(512 << 10)));
        let fonts = Fonts::load().unwrap();
        assert_eq!(layout(&document, &fonts, later()).pages.len(), PAGES);
        conforming(document);
    }

    #[test]
    fn no_page_is_opened_after_the_deadline() {
        let mut document = document("");
        document.blocks.push(Block::Paragraph("word ".repeat(10_000)));
        let fonts = Fonts::load().unwrap();
        let pages = layout(&document, &fonts, Instant::now()).pages;
        assert_eq!(pages.len(), 2);
        let is_end = |item: &Item| matches!(item, Item::Text { text, .. } if text.contains("ends after 2 pages"));
        assert!(pages[1].iter().any(is_end));
    }

    #[test]
    fn pictures_have_a_number_of_pixels_together() {
        let pixel = Picture::read(crate::picture::tests::PIXEL.into()).unwrap();
        let mut document = document("");
        document.blocks.clear();
        for (format, decoded) in [
            (Format::Png, PIXELS - 10),
            (Format::Png, 11),
            (Format::Jpeg, 1 << 20),
            (Format::Png, 10),
            (Format::Png, 1),
        ] {
            let picture = Picture { format, decoded, ..pixel.clone() };
            document.blocks.push(Block::Figure { picture, caption: "Large".to_owned() });
        }
        leave_out_pictures(&mut document);
        let is_kept = |block: &Block| matches!(block, Block::Figure { .. });
        let kept: Vec<bool> = document.blocks.iter().map(is_kept).collect();
        assert_eq!(kept, [true, false, true, true, false]);
    }

    #[test]
    fn broken_pictures_are_replaced() {
        let mut document = document("");
        let mut broken = crate::picture::tests::PIXEL.to_vec();
        broken[45..50].fill(0xff);
        let picture = Picture::read(broken.into()).unwrap();
        document.logo = Some(picture.clone());
        for _ in 0..10 {
            let caption = "Broken".to_owned();
            document.blocks.push(Block::Figure { picture: picture.clone(), caption });
        }
        conforming(document);
    }

    #[test]
    fn passes_share_the_time_of_a_document() {
        let begin = Instant::now();
        let end = begin + Duration::from_secs(6);
        let after = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(end_of_pass(begin, end), after(3));
        assert_eq!(end_of_pass(after(4), end), after(5));
        assert_eq!(end_of_pass(after(6), end), after(6));
        assert_eq!(end_of_pass(after(9), end), after(9), "no time is left");
    }

    #[test]
    fn a_document_without_time_is_short_but_whole() {
        let mut document = document("");
        let mut broken = crate::picture::tests::PIXEL.to_vec();
        broken[45..50].fill(0xff);
        document.logo = Some(Picture::read(broken.into()).unwrap());
        document.blocks.push(Block::Paragraph("word ".repeat(512 << 10)));
        let Pdf { file, nonconformance } = pdf(document, Duration::ZERO).unwrap();
        assert_eq!(nonconformance, None);
        assert!(has(&file, "/Count 2"), "the pages");
    }

    #[test]
    fn remarks_say_why_pictures_are_missing() {
        let pixel = Picture::read(crate::picture::tests::PIXEL.into()).unwrap();
        let figure =
            |caption: &str| Block::Figure { picture: pixel.clone(), caption: caption.to_owned() };
        let mut document = document("");
        document.logo = Some(pixel.clone());
        document.blocks = vec![figure("First"), figure("Second")];
        replace_pictures(&mut document, Some(1));
        assert!(matches!(&document.blocks[0], Block::Figure { .. }) && document.logo.is_some());
        let text = |block: &Block| matches!(block, Block::Note(text) if text == "Second: the picture cannot be decoded.");
        assert!(text(&document.blocks[1]));
        replace_pictures(&mut document, None);
        assert!(
            matches!(&document.blocks[0], Block::Note(text) if text.starts_with("First: left out of the PDF"))
        );
        assert!(document.logo.is_none());
    }
}
