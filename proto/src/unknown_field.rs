//! Fields that an input does not have.

/// Maximum length of a name that may be a misspelt one, in bytes. Longer ones are not compared, which takes time by their
/// length.
const LONGEST: usize = 64;

/// Similarity from which a name is suggested for another, from 0 to 1.
const SIMILAR: f64 = 0.8;

/// Returns the name of the unknown field that an error of serde reports, and what a client should do.
pub fn unknown_field(error: &str) -> Option<(&str, String)> {
    let (name, expected) = error.strip_prefix("unknown field `")?.split_once('`')?;
    // Every second part is between backticks.
    let fields = expected.split('`').skip(1).step_by(2);
    Some((name, advice(name, fields)))
}

/// Returns what a client should do instead of sending a field that is not among these.
pub(crate) fn advice<'a>(name: &str, fields: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, fields) {
        Some(field) => format!("no such field; did you mean `{field}`?"),
        None => "no such field".to_owned(),
    }
}

/// Returns the name that a misspelt one probably stands for.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    let similarity = |known: &str| strsim::jaro_winkler(&name, &known.to_lowercase());
    let nearest = known.map(|known| (similarity(known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    nearest.filter(|(similarity, _)| *similarity >= SIMILAR).map(|(_, known)| known)
}
