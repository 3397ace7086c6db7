//! Texts and other items in a column, one below the other, on as many pages as they need.

use std::time::Instant;

use super::{
    font::Fonts,
    line::lines,
    place::{BOTTOM, Face, Item, MARGIN, WIDTH},
    tag::Tagged,
};
use crate::color::Color;

/// The pages so far.
pub(super) struct Flow<'a> {
    pub(super) fonts: &'a Fonts,
    pages: Vec<Vec<Item>>,
    /// Upper edge of the next item.
    pub(super) top: f32,
    /// Number of contents so far.
    contents: usize,
    most: usize,
    deadline: Instant,
    /// Whether something did not fit.
    pub(super) is_full: bool,
}

impl<'a> Flow<'a> {
    /// A column on at most this number of pages, of which the first is open. No page is opened after the deadline.
    pub(super) fn new(fonts: &'a Fonts, most: usize, deadline: Instant) -> Self {
        let pages = vec![Vec::new()];
        Self { fonts, pages, top: MARGIN, contents: 0, most, deadline, is_full: false }
    }

    /// Returns the pages and the number of their contents.
    pub(super) fn finish(self) -> (Vec<Vec<Item>>, usize) {
        (self.pages, self.contents)
    }

    /// Returns the index of the open page.
    pub(super) fn page(&self) -> usize {
        self.pages.len() - 1
    }

    /// Opens a page after the last one that was allowed. Returns its number.
    pub(super) fn extend(&mut self) -> usize {
        self.is_full = false;
        self.open();
        self.pages.len()
    }

    fn new_page(&mut self) {
        if self.pages.len() >= self.most || Instant::now() >= self.deadline {
            self.is_full = true;
        } else {
            self.open();
        }
    }

    fn open(&mut self) {
        self.pages.push(Vec::new());
        self.top = MARGIN;
    }

    /// Starts a new page unless this height is left. Returns whether there is room, which there is not on the
    /// last page.
    pub(super) fn reserve(&mut self, height: f32) -> bool {
        if self.top + height > BOTTOM && self.top > MARGIN {
            self.new_page();
        }
        !self.is_full
    }

    pub(super) fn put(&mut self, item: Item) {
        if let Some(page) = self.pages.last_mut() {
            page.push(item);
        }
    }

    /// Returns the number of the next content.
    pub(super) fn content(&mut self) -> usize {
        self.contents += 1;
        self.contents - 1
    }

    /// Puts a line at a place of this page.
    pub(super) fn text_at(
        &mut self,
        at: (f32, f32),
        face: Face,
        text: String,
        content: Option<usize>,
    ) {
        let at = (at.0, at.1 + face.ascent());
        self.put(Item::Text { at, face, text, content });
    }

    /// Puts a text below what is there. Returns its contents.
    pub(super) fn text(&mut self, text: &str, face: Face, indent: f32) -> Vec<Tagged> {
        let mut tags = Vec::new();
        for text in lines(self.fonts, face.style, text, (WIDTH - indent) / face.size) {
            if !self.reserve(face.leading()) {
                break;
            }
            if !text.is_empty() {
                let content = self.content();
                self.text_at((MARGIN + indent, self.top), face, text, Some(content));
                tags.push(Tagged::Content(content));
            }
            self.top += face.leading();
        }
        tags
    }

    /// Does the same as [`Flow::text`], with a bar at the left on each page.
    pub(super) fn text_beside_bar(&mut self, text: &str, face: Face, color: Color) -> Vec<Tagged> {
        let mut tags = Vec::new();
        for text in lines(self.fonts, face.style, text, (WIDTH - 10.0) / face.size) {
            if !self.reserve(face.leading()) {
                break;
            }
            let size = (2.5, face.leading());
            self.put(Item::Bar { at: (MARGIN, self.top), size, color });
            // The line is whole: it fits.
            tags.extend(self.text(&text, face, 10.0));
        }
        tags
    }
}
