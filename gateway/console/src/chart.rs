//! Charts and symbols as SVG. Results differ in shape or height as well as in colour.

mod canvas;
mod quartiles;
mod strip;
mod symbol;
mod trend;

pub(crate) use self::{
    quartiles::{Quartiles, box_plot},
    strip::{bar, cells, failures, strip},
    symbol::{flaky, glyph, glyph_of_run, sprite},
    trend::{dated, durations},
};
