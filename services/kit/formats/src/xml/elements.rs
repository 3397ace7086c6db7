//! Readers of formats in which only the own text of an element matters.

use std::io::BufRead;

use assay_proto::Fault;

use super::{Attributes, Document, Path, read};
use crate::{
    Property,
    decoded::Replaced,
    limits::{MESSAGE, OUTPUT, TEXT},
    texts::{keep_beginning, keep_end},
};

/// A reader of one format, which receives elements with their texts.
pub(crate) trait Elements {
    /// Returns whether the text of an element with this name is output, of which the end is kept. Of
    /// others, the beginning is kept.
    fn is_output(name: &str) -> bool;

    /// Handles the start of an element. It is the last one of the path.
    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault>;

    /// Handles the end of an element, which is the last one of the path, with its text. Of an element
    /// with others in it, that is the text behind them.
    fn close(&mut self, path: &Path, text: &str) -> Result<(), Fault>;
}

/// Parses a file of the format with this name.
pub(crate) fn read_elements(
    format: &str,
    file: impl BufRead,
    replaced: &Replaced,
    elements: &mut impl Elements,
) -> Result<(), Fault> {
    read(format, file, replaced, &mut Texts { elements, text: String::new() })
}

/// Collects the text of the open element.
struct Texts<'e, E> {
    elements: &'e mut E,
    text: String,
}

impl<E: Elements> Document for Texts<'_, E> {
    fn open(&mut self, path: &Path, attributes: &Attributes<'_>) -> Result<(), Fault> {
        self.text.clear();
        self.elements.open(path, attributes)
    }

    fn text(&mut self, path: &Path, text: &str) {
        if E::is_output(path.name()) {
            keep_end(&mut self.text, text, OUTPUT);
        } else {
            keep_beginning(&mut self.text, text, TEXT);
        }
    }

    fn close(&mut self, path: &Path) -> Result<(), Fault> {
        let text = std::mem::take(&mut self.text);
        self.elements.close(path, text.trim())
    }
}

impl Attributes<'_> {
    /// Returns the property that the attributes `name` and `value` are.
    pub(crate) fn property(&self) -> Property {
        let mut property = Property::default();
        self.each(|name, value| match name {
            "name" => keep_beginning(&mut property.name, value, MESSAGE),
            "value" => keep_beginning(&mut property.value, value, MESSAGE),
            _ => {}
        });
        property
    }

    /// Returns the label of a test of .NET that the attributes are. Categories are tags.
    pub(crate) fn dotnet_label(&self) -> Property {
        let mut label = self.property();
        if label.name == "Category" {
            "tag".clone_into(&mut label.name);
        }
        label
    }
}
