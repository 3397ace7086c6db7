//! The document that shows the tables.

use std::{fs, path::Path};

use anyhow::{Context, Result};

const BEGIN: &str = "<!-- tables of `make bench` -->\n";
const END: &str = "<!-- end of the tables -->\n";

/// Replaces the text between the marks of a document.
pub(crate) fn insert(file: &Path, tables: &str) -> Result<()> {
    let shown = file.display();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    let marks = || format!("{shown} does not have the lines {BEGIN}and {END}");
    let (before, rest) = text.split_once(BEGIN).with_context(marks)?;
    let (_, after) = rest.split_once(END).with_context(marks)?;
    fs::write(file, format!("{before}{BEGIN}\n{tables}\n{END}{after}"))?;
    Ok(())
}
