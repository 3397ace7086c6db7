//! Places on pages. Lengths are in points, from the upper left corner.

use super::font::Style;
use crate::{block::Tone, color::Color};

/// Size of a page: A4.
pub(super) const PAGE: (f32, f32) = (595.0, 842.0);

/// Left, right and upper margin.
pub(super) const MARGIN: f32 = 48.0;

/// Lower edge of the content of a page. The number of the page is below it.
pub(super) const BOTTOM: f32 = PAGE.1 - 56.0;

/// Width of the content of a page.
pub(super) const WIDTH: f32 = PAGE.0 - 2.0 * MARGIN;

/// Something at a place.
pub(super) enum Item {
    Text {
        /// Left end of the base line.
        at: (f32, f32),
        face: Face,
        text: String,
        /// Number of the content in the tree of tags; none for repeated headers.
        content: Option<usize>,
    },
    /// A filled rectangle without a meaning.
    Bar { at: (f32, f32), size: (f32, f32), color: Color },
    Picture {
        at: (f32, f32),
        size: (f32, f32),
        /// Number of the figure in the document, or none for the logo.
        figure: Option<usize>,
        content: usize,
    },
}

/// The look of a text.
#[derive(Clone, Copy)]
pub(super) struct Face {
    pub(super) style: Style,
    pub(super) size: f32,
    pub(super) color: Color,
}

impl Face {
    pub(super) fn of(style: Style, size: f32, tone: Tone) -> Self {
        Self { style, size, color: tone.color() }
    }

    /// Distance of two base lines.
    pub(super) fn leading(self) -> f32 {
        self.size * 1.4
    }

    /// Distance of the base line from the upper edge of the line.
    pub(super) fn ascent(self) -> f32 {
        self.size * 1.05
    }
}
