//! Cells of CSV, which exports write and imports read.

/// The beginnings of cells that spreadsheets interpret as formulas: those with full-width characters do so in some
/// languages.
const FORMULAS: [char; 11] =
    ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];

/// Returns whether a spreadsheet would interpret a cell as a formula, without the apostrophes before it. An export puts
/// an apostrophe before such a cell, and an import removes it.
pub fn is_formula(cell: &str) -> bool {
    cell.trim_start_matches('\'').starts_with(FORMULAS)
}
