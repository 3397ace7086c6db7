//! Tables. A row is on one page, and each page repeats the titles of the columns.

use krilla::tagging::{TableHeaderScope, Tag, TagKind};

use super::{
    flow::Flow,
    font::Style,
    line::lines,
    place::{BOTTOM, Face, Item, MARGIN, WIDTH},
    tag::Tagged,
};
use crate::{
    block::{Cell, Table, Tone},
    color::Color,
};

const LINE: Color = Color(0xdf, 0xe4, 0xe9);

/// Maximum number of lines of a cell.
const LINES: usize = 20;

/// Distances between columns, and around rows.
const GAP: f32 = 8.0;
const PADDING: f32 = 3.0;

/// A line of a cell.
type CellLine = (Face, String);

/// A row as lines, the columns at their places.
struct Row {
    cells: Vec<Vec<CellLine>>,
    height: f32,
}

/// Puts a table below what is there.
pub(super) fn table(flow: &mut Flow<'_>, table: &Table) -> Tagged {
    let places = places(table);
    let titles: Vec<_> = table.columns.iter().map(|column| Cell::plain(column.title)).collect();
    let titles = row(flow, &titles, &places, |_| Face::of(Style::Bold, 7.5, Tone::Dim));
    let mut body = Vec::new();
    let mut head = None;
    for cells in &table.rows {
        let row = row(flow, cells, &places, |cell| {
            let style = if cell.tone == Tone::Plain { Style::Sans } else { Style::Bold };
            Face::of(style, 8.5, cell.tone)
        });
        let needed = if head.is_none() { titles.height + row.height } else { row.height };
        let is_next_page = flow.top + needed > BOTTOM;
        if !flow.reserve(needed) {
            break;
        }
        if head.is_none() {
            head = Some(put(
                flow,
                &titles,
                &places,
                Some(|_| Tag::TH(TableHeaderScope::Column).into()),
            ));
        } else if is_next_page {
            put(flow, &titles, &places, None);
        }
        body.push(put(flow, &row, &places, Some(tag_of_cell)));
    }
    flow.top += 6.0;
    let head = Tagged::group(Tag::THead, head.into_iter().collect());
    let body = Tagged::group(Tag::TBody, body);
    Tagged::group(Tag::Table.with_summary(Some(table.caption.clone())), vec![head, body])
}

fn tag_of_cell(column: usize) -> TagKind {
    if column == 0 { Tag::TH(TableHeaderScope::Row).into() } else { Tag::TD.into() }
}

/// Returns the left edge and the width of each column.
fn places(table: &Table) -> Vec<(f32, f32)> {
    let total: u16 = table.columns.iter().map(|column| column.weight).sum();
    let mut left = MARGIN;
    let place = |column: &crate::block::Column| {
        let width = WIDTH * f32::from(column.weight) / f32::from(total.max(1));
        left += width;
        (left - width, width - GAP)
    };
    table.columns.iter().map(place).collect()
}

/// Breaks the cells of a row into lines.
fn row(
    flow: &Flow<'_>,
    cells: &[Cell],
    places: &[(f32, f32)],
    face_of: impl Fn(&Cell) -> Face,
) -> Row {
    let of_cell = |(cell, (_, width)): (&Cell, &(f32, f32))| {
        let id = Face::of(Style::Mono, 7.0, Tone::Dim);
        // A cell without content would not count as one.
        let text = if cell.text.trim().is_empty() { "–" } else { &cell.text };
        let text = in_lines(flow, text, face_of(cell), *width);
        let detail = in_lines(flow, &cell.detail, id, *width).into_iter();
        let mut all: Vec<_> =
            text.into_iter().chain(detail).filter(|(_, text)| !text.is_empty()).collect();
        if all.len() > LINES {
            all.truncate(LINES - 1);
            all.push((id, "…".to_owned()));
        }
        all
    };
    let cells: Vec<_> = cells.iter().zip(places).map(of_cell).collect();
    let height = |cell: &Vec<CellLine>| cell.iter().map(|(face, _)| face.leading()).sum::<f32>();
    let height = cells.iter().map(height).fold(0.0, f32::max) + 2.0 * PADDING;
    Row { cells, height }
}

fn in_lines(flow: &Flow<'_>, text: &str, face: Face, width: f32) -> Vec<CellLine> {
    let lines = lines(flow.fonts, face.style, text, width / face.size);
    lines.into_iter().map(|line| (face, line)).collect()
}

/// Puts a row below what is there. Without tags, it is a repetition.
fn put(
    flow: &mut Flow<'_>,
    row: &Row,
    places: &[(f32, f32)],
    tag: Option<fn(usize) -> TagKind>,
) -> Tagged {
    let mut cells = Vec::new();
    for (column, (cell, (left, _))) in row.cells.iter().zip(places).enumerate() {
        let (mut top, mut contents) = (flow.top + PADDING, Vec::new());
        for (face, text) in cell {
            let content = tag.is_some().then(|| flow.content());
            contents.extend(content.map(Tagged::Content));
            flow.text_at((*left, top), *face, text.clone(), content);
            top += face.leading();
        }
        cells.extend(tag.map(|tag| Tagged::group(tag(column), contents)));
    }
    flow.top += row.height;
    flow.put(Item::Bar { at: (MARGIN, flow.top - 0.6), size: (WIDTH, 0.6), color: LINE });
    Tagged::group(Tag::TR, cells)
}
