//! Documents of executions: one file with the verdict, the causes, the tests and their pictures.
//!
//! A [`Report`] has the facts of an execution, and a [`Template`] the choices of its project. [`compose`] makes a
//! [`Document`] of them: headings, tables, texts and pictures, in their order. [`html()`] and [`pdf()`] render the same
//! document. Nothing here calls a service or reads a file, so that hostile texts can at most look ugly.

mod block;
mod color;
mod compose;
mod html;
mod pdf;
mod picture;
mod report;
mod template;
mod text;

pub use self::{
    block::{Block, Cell, Column, Document, Table, Tone},
    color::Color,
    compose::compose,
    html::html,
    pdf::{Pdf, Unrenderable, pdf},
    picture::{LARGEST_PICTURE, Picture, Unusable},
    report::{Cause, Changes, Counts, Failure, Listed, Outcome, Report, Rule, Step, Test, Verdict},
    template::{Fault, LARGEST_TEMPLATE, Template},
    text::Allowance,
};
