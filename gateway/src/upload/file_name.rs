//! Names of the files of a form.

use http::{HeaderMap, header::CONTENT_DISPOSITION};

/// Returns the name of the file that a field with these headers is, if it is one.
///
/// The parser of forms leaves the backslashes in it that escape others.
pub(crate) fn file_name(headers: &HeaderMap) -> Option<String> {
    let header = headers.get(CONTENT_DISPOSITION)?;
    parameter(std::str::from_utf8(header.as_bytes()).ok()?, "filename")
}

/// Returns the value of a parameter of a header.
fn parameter(header: &str, sought: &str) -> Option<String> {
    let (_, mut rest) = header.split_once(';')?;
    loop {
        let (name, after) = rest.split_once('=')?;
        let (value, after) = value(after.trim_start());
        if name.trim().eq_ignore_ascii_case(sought) {
            return Some(value);
        }
        (_, rest) = after.split_once(';')?;
    }
}

/// Returns the value that a text begins with, and the text after it.
///
/// In a quoted value, a backslash escapes quotes and backslashes. Browsers do not escape it, so
/// that it stands for itself in front of other characters.
fn value(text: &str) -> (String, &str) {
    let Some(mut rest) = text.strip_prefix('"') else {
        let (value, _) = text.split_once(';').unwrap_or((text, ""));
        return (value.trim_end().to_owned(), &text[value.len()..]);
    };
    let mut value = String::new();
    while let Some(place) = rest.find(['"', '\\']) {
        let (before, found) = rest.split_at(place);
        value.push_str(before);
        if let Some(after) = found.strip_prefix('"') {
            return (value, after);
        }
        let is_escape = found[1..].starts_with(['"', '\\']);
        let found = if is_escape { &found[1..] } else { found };
        value.push_str(&found[..1]);
        rest = &found[1..];
    }
    (value + rest, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_read_as_clients_escape_them() {
        for (header, name) in [
            (r#"form-data; name="file"; filename="a b.xml""#, Some("a b.xml")),
            (r#"form-data; name="file"; filename="shots\\cart.png""#, Some(r"shots\cart.png")),
            (r#"form-data; name="file"; filename="shots\cart.png""#, Some(r"shots\cart.png")),
            (r#"form-data; name="file"; filename="\\\\host\\a.png""#, Some(r"\\host\a.png")),
            (r#"form-data; name="file"; filename="the \"a\".png""#, Some(r#"the "a".png"#)),
            (r#"form-data; name="file"; filename="folder\\""#, Some(r"folder\")),
            (r#"form-data; name="; filename=x"; filename="a;b=c.png""#, Some("a;b=c.png")),
            (r"form-data; filename=a.xml ; name=file", Some("a.xml")),
            (r#"form-data; name="file"; FileName = "ä.xml""#, Some("ä.xml")),
            (r#"form-data; name="file"; filename="""#, Some("")),
            (r#"form-data; name="file"; filename="open"#, Some("open")),
            (r#"form-data; name="filename""#, None),
            ("form-data", None),
        ] {
            assert_eq!(parameter(header, "filename").as_deref(), name, "{header}");
        }
    }
}
