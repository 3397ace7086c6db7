//! The fonts, and the glyphs of texts.
//!
//! Most characters have one glyph each, which is found in a table of the font. Words with other characters are
//! shaped, so that letters of Arabic join and accents stand above their letters.

use std::{cell::RefCell, collections::HashMap, ops::Range};

use krilla::{
    Data,
    text::{Font, GlyphId, KrillaGlyph},
};
use rustybuzz::{Direction, Face as Shaper, GlyphBuffer, Script, ShapePlan, UnicodeBuffer, script};

const SANS: &[u8] = include_bytes!("../../fonts/DejaVuSans.ttf");
const BOLD: &[u8] = include_bytes!("../../fonts/DejaVuSans-Bold.ttf");
const MONO: &[u8] = include_bytes!("../../fonts/DejaVuSansMono.ttf");

/// A font.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Style {
    Sans,
    Bold,
    Mono,
}

pub(super) struct Fonts {
    sans: Loaded,
    bold: Loaded,
    mono: Loaded,
}

struct Loaded {
    font: Font,
    shaper: Shaper<'static>,
    /// Advances of the ASCII characters, in sizes of the font.
    ascii: [f32; 128],
    /// How to shape texts of a direction and a script. Making a plan takes a hundred times as long as shaping a word.
    plans: RefCell<HashMap<(Direction, Script), ShapePlan>>,
}

impl Loaded {
    fn load(data: &'static [u8]) -> Option<Self> {
        let shaper = Shaper::from_slice(data, 0)?;
        let font = Font::new(Data::from(data), 0)?;
        let mut loaded = Self { font, shaper, ascii: [0.0; 128], plans: RefCell::default() };
        for byte in 0..128_u8 {
            loaded.ascii[usize::from(byte)] = loaded.advance(byte.into());
        }
        Some(loaded)
    }

    fn shape(&self, buffer: UnicodeBuffer) -> GlyphBuffer {
        let key @ (direction, script) = (buffer.direction(), buffer.script());
        let mut plans = self.plans.borrow_mut();
        let plan = plans.entry(key).or_insert_with(|| {
            let script = Some(script).filter(|script| *script != script::UNKNOWN);
            ShapePlan::new(&self.shaper, direction, script, None, &[])
        });
        rustybuzz::shape_with_plan(&self.shaper, plan, buffer)
    }

    fn has(&self, char: char) -> bool {
        self.shaper.glyph_index(char).is_some()
    }

    fn advance(&self, char: char) -> f32 {
        let glyph = self.shaper.glyph_index(char);
        let advance = glyph.and_then(|glyph| self.shaper.glyph_hor_advance(glyph));
        f32::from(advance.unwrap_or_default()) / self.units()
    }

    #[expect(clippy::cast_precision_loss, reason = "it is 2,048")]
    fn units(&self) -> f32 {
        self.shaper.units_per_em() as f32
    }
}

impl Fonts {
    pub(super) fn load() -> Option<Self> {
        Some(Self {
            sans: Loaded::load(SANS)?,
            bold: Loaded::load(BOLD)?,
            mono: Loaded::load(MONO)?,
        })
    }

    fn of(&self, style: Style) -> &Loaded {
        match style {
            Style::Sans => &self.sans,
            Style::Bold => &self.bold,
            Style::Mono => &self.mono,
        }
    }

    pub(super) fn font(&self, style: Style) -> Font {
        self.of(style).font.clone()
    }

    /// Returns a text in characters that the sans font has.
    pub(super) fn shown(&self, text: &str) -> String {
        let mut shown = String::with_capacity(text.len());
        for char in text.chars() {
            match char {
                ' '..='~' => shown.push(char),
                '\t' => shown.push_str("    "),
                '\u{2028}' | '\u{2029}' => shown.push(' '),
                _ if char.is_control() || is_dropped(char) => {}
                _ if self.sans.has(char) && !is_private(char) => shown.push(char),
                _ => shown.push(char::REPLACEMENT_CHARACTER),
            }
        }
        shown
    }

    /// Returns the font in which a text in one direction can be written: the wanted one, or else the sans font.
    pub(super) fn fitting(&self, style: Style, text: &str) -> Style {
        let has_all = text.is_ascii() || text.chars().all(|char| self.of(style).has(char));
        if has_all { style } else { Style::Sans }
    }

    /// Returns the width of a text, in sizes of the font.
    pub(super) fn width(&self, style: Style, text: &str) -> f32 {
        if text.is_ascii() {
            return text.bytes().map(|byte| self.of(style).ascii[usize::from(byte)]).sum();
        }
        let style = self.fitting(style, text);
        if text.chars().all(is_simple) {
            return text.chars().map(|char| self.of(style).advance(char)).sum();
        }
        self.shape(style, text, None).iter().map(|glyph| glyph.x_advance).sum()
    }

    /// Returns the glyphs of a text in one direction and in a font that has its characters, from left to right.
    pub(super) fn glyphs(&self, style: Style, text: &str, right_to_left: bool) -> Vec<KrillaGlyph> {
        if right_to_left || !text.chars().all(is_simple) {
            let direction =
                if right_to_left { Direction::RightToLeft } else { Direction::LeftToRight };
            return self.shape(style, text, Some(direction));
        }
        let loaded = self.of(style);
        let glyph = |(start, char): (usize, char)| {
            let id = loaded.shaper.glyph_index(char).unwrap_or_default();
            let range = start..start + char.len_utf8();
            KrillaGlyph::new(
                GlyphId::new(id.0.into()),
                loaded.advance(char),
                0.0,
                0.0,
                0.0,
                range,
                None,
            )
        };
        text.char_indices().map(glyph).collect()
    }

    fn shape(&self, style: Style, text: &str, direction: Option<Direction>) -> Vec<KrillaGlyph> {
        let loaded = self.of(style);
        let mut buffer = UnicodeBuffer::new();
        buffer.push_str(text);
        buffer.guess_segment_properties();
        if let Some(direction) = direction {
            buffer.set_direction(direction);
        }
        let shaped = loaded.shape(buffer);
        let mut starts: Vec<usize> =
            shaped.glyph_infos().iter().map(|info| info.cluster as usize).collect();
        starts.sort_unstable();
        let range = |start: usize| -> Range<usize> {
            let next = starts.partition_point(|other| *other <= start);
            start..starts.get(next).copied().unwrap_or(text.len())
        };
        let missing = loaded.shaper.glyph_index(char::REPLACEMENT_CHARACTER).unwrap_or_default();
        let glyphs = shaped.glyph_infos().iter().zip(shaped.glyph_positions());
        let glyph = |(info, position): (&rustybuzz::GlyphInfo, &rustybuzz::GlyphPosition)| {
            let id = if info.glyph_id == 0 { missing.0.into() } else { info.glyph_id };
            let [advance, x, y] = [position.x_advance, position.x_offset, position.y_offset];
            let [advance, x, y] = [advance, x, y].map(|units| scaled(units, loaded.units()));
            KrillaGlyph::new(
                GlyphId::new(id),
                advance,
                x,
                y,
                0.0,
                range(info.cluster as usize),
                None,
            )
        };
        glyphs.map(glyph).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "glyphs are a few thousand units wide")]
fn scaled(units: i32, size: f32) -> f32 {
    units as f32 / size
}

/// Returns whether a character chooses or joins glyphs that the font does not have, or marks the order of bytes.
fn is_dropped(char: char) -> bool {
    matches!(char, '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Returns whether a character is for private use, so that it means nothing to others.
fn is_private(char: char) -> bool {
    matches!(char, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}')
}

/// Returns whether a character has one glyph, whatever stands beside it.
fn is_simple(char: char) -> bool {
    matches!(char, '\0'..='\u{2ff}' | '\u{370}'..='\u{482}' | '\u{48a}'..='\u{52f}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{2bff}' | '\u{fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_the_font_does_not_have_are_replaced() {
        let fonts = Fonts::load().unwrap();
        assert_eq!(fonts.shown("Größe Ωμέγα Вход שלום"), "Größe Ωμέγα Вход שלום");
        assert_eq!(fonts.shown("漢字"), "\u{fffd}\u{fffd}");
        assert_eq!(fonts.shown("a\tb\u{200d}\u{fe0f}\u{e123}\u{7}"), "a    b\u{fffd}");
    }

    #[test]
    fn every_glyph_is_of_the_font() {
        let fonts = Fonts::load().unwrap();
        for text in ["plain", "e\u{301}", "a\u{488}\u{20dd}", "مرحبا", "שלום", "\u{fffd}"]
        {
            for style in [Style::Sans, Style::Bold, Style::Mono] {
                let text = fonts.shown(text);
                let style = fonts.fitting(style, &text);
                let glyphs = fonts.glyphs(style, &text, false);
                assert!(
                    glyphs.iter().all(|glyph| glyph.glyph_id.to_u32() != 0),
                    "{text} {style:?}"
                );
                assert!(fonts.width(style, &text) > 0.0, "{text}");
            }
        }
    }
}
