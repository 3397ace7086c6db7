//! Documents as one HTML file, without scripts and other files.

use std::iter;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{
    block::{Block, Cell, Document, Table, Tone},
    picture::Picture,
};

const STYLE: &str = include_str!("html/style.css");

/// Policy of the file itself, for copies of it: its own style and pictures within it.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'";

/// Number of rows of a table in one part of the file.
const ROWS: usize = 100;

/// Returns the file part by part, so that only one part is in memory at a time beside the document.
pub fn html(document: Document) -> impl Iterator<Item = Bytes> + Send + 'static {
    let head = head(&document);
    let blocks = document.blocks.into_iter().flat_map(parts);
    let end = iter::once_with(|| "</main></body></html>\n".to_owned());
    iter::once(head).chain(blocks).chain(end).map(Bytes::from)
}

/// Returns the file up to the title. It ends within `main`.
fn head(document: &Document) -> String {
    let accent = format!(":root{{--accent:{}}}", document.color);
    let head = html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(POLICY);
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="referrer" content="no-referrer";
            title { (document.title) }
            style { (PreEscaped(STYLE)) (PreEscaped(accent)) }
        }
    };
    let title = html! {
        header {
            @if let Some(logo) = &document.logo { (image(logo, "Logo")) }
            h1 { bdi { (document.title) } }
        }
    };
    let (doctype, head) = (DOCTYPE.into_string(), head.into_string());
    format!("{doctype}<html lang=\"en\">{head}<body><main>{}", title.into_string())
}

/// Returns the parts of a block: tables may be long.
fn parts(block: Block) -> Box<dyn Iterator<Item = String> + Send> {
    match block {
        Block::Table(table) => Box::new(table_parts(table)),
        block => Box::new(iter::once_with(move || of_block(&block).into_string())),
    }
}

fn of_block(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Heading { level: 2, text } => h2 { bdi { (text) } },
            Block::Heading { text, .. } => h3 { bdi { (text) } },
            Block::Paragraph(text) => p dir="auto" { (text) },
            Block::Note(text) => p.note dir="auto" { strong { "Note: " } (text) },
            Block::Badge { tone, text } => p { span class={ "badge " (tone.class()) } { (text) } },
            Block::Text { label, tone, text } => {
                figure class={ "text " (tone.class()) } {
                    figcaption { (label) }
                    pre tabindex="0" { (text) }
                }
            }
            Block::Figure { picture, caption } => {
                figure { (image(picture, caption)) figcaption { (caption) } }
            }
            Block::Table(_) => {},
        }
    }
}

fn image(picture: &Picture, text: &str) -> Markup {
    let (width, height) = picture.size;
    let source =
        format!("data:{};base64,{}", picture.media_type(), BASE64_STANDARD.encode(&picture.bytes));
    html! { img src=(source) width=(width) height=(height) alt=(text); }
}

fn table_parts(table: Table) -> impl Iterator<Item = String> + Send {
    let head = html! {
        caption { (table.caption) }
        thead { tr { @for column in &table.columns { th scope="col" { (column.title) } } } }
    };
    let open = format!("<div class=\"table\"><table>{}<tbody>", head.into_string());
    let mut rows = table.rows.into_iter();
    let parts = iter::from_fn(move || {
        let part: Vec<_> = rows.by_ref().take(ROWS).collect();
        (!part.is_empty()).then(|| html! { @for cells in &part { (row(cells)) } }.into_string())
    });
    iter::once(open).chain(parts).chain(iter::once("</tbody></table></div>".to_owned()))
}

fn row(cells: &[Cell]) -> Markup {
    html! {
        tr {
            @for (index, cell) in cells.iter().enumerate() {
                @if index == 0 { th scope="row" { (contents(cell)) } }
                @else { td { (contents(cell)) } }
            }
        }
    }
}

fn contents(cell: &Cell) -> Markup {
    html! {
        @if cell.tone == Tone::Plain { span.lines dir="auto" { (cell.text) } }
        @else { strong class=(cell.tone.class()) { (cell.text) } }
        @if !cell.detail.is_empty() { span.id dir="auto" { (cell.detail) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compose, compose::tests::report, template::Template};

    fn rendered(text: &str) -> String {
        let document = compose(report(text), &Template::default(), None);
        let parts: Vec<Bytes> = html(document).collect();
        String::from_utf8(parts.concat()).unwrap()
    }

    #[test]
    fn the_file_has_the_facts_in_their_order() {
        let file = rendered("");
        let parts = [
            "<!DOCTYPE html><html lang=\"en\">",
            "<h1>",
            "Failed: 1 of 120 test cases failed (1 new)",
            "NewFailures",
            "Pay by card",
            "no response\nafter 30 s",
            "data:image/png;base64,iVBOR",
            "alt=\"Screenshot 1 of step 1 of the test\"",
            "clip.webm: it is not a PNG",
            "119 further test cases are left out.",
            "</html>",
        ];
        let mut rest = file.as_str();
        for part in parts {
            let start = rest
                .find(part)
                .unwrap_or_else(|| panic!("{part} is missing or at another place:\n{file}"));
            rest = &rest[start + part.len()..];
        }
    }

    #[test]
    fn hostile_texts_stay_texts() {
        let hostile = "<script>alert(1)</script>\"'><img src=//evil.example/x onerror=alert(1)></pre></style>";
        let file = rendered(hostile);
        assert!(file.contains("&lt;script&gt;"));
        for part in ["<script", "<img src=//", "</pre></style>", "onerror=alert(1)>"] {
            assert!(!file.contains(part), "{part}");
        }
    }

    #[test]
    fn the_file_names_no_other_file() {
        let file = rendered("");
        for part in ["src=\"http", "href=", "url(", "@import", "<link", "<iframe", "<script"] {
            assert!(!file.contains(part), "{part}");
        }
    }

    /// A browser ignores the second.
    #[test]
    fn no_element_has_an_attribute_twice() {
        for tag in rendered("").split('<').filter_map(|rest| rest.split('>').next()) {
            assert!(tag.matches(" class=").count() < 2, "{tag}");
        }
    }

    #[test]
    fn each_table_has_headers_and_a_caption() {
        let file = rendered("");
        let count = |part: &str| file.matches(part).count();
        assert_eq!(count("<table>"), count("<caption>"));
        assert_eq!(count("<table>"), count("</table>"));
        assert!(count("<th scope=\"row\">") >= 4 && count("<th scope=\"col\">") >= 8);
    }
}
