//! The known word that a misspelt one resembles most.

/// Maximum number of characters of a word that are compared.
const COMPARED: usize = 64;

/// Returns the known word that equals a text in any case.
pub fn in_any_case<'k>(text: &str, mut known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    known.find(|word| word.eq_ignore_ascii_case(text))
}

/// Returns the known word with the fewest different characters, in any case, and their number.
pub fn nearest<'k>(text: &str, known: impl Iterator<Item = &'k str>) -> Option<(&'k str, usize)> {
    let measured = known.map(|word| (word, distance(text, word)));
    measured.min_by_key(|(_, distance)| *distance)
}

/// Returns the known word that a text is probably meant to be: it differs by a typing error.
pub fn misspelt<'k>(text: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let errors = if text.chars().count() < 6 { 1 } else { 2 };
    nearest(text, known).filter(|(_, distance)| *distance <= errors).map(|(word, _)| word)
}

/// Returns the number of characters to insert, remove or replace (the distance of Levenshtein).
fn distance(one: &str, other: &str) -> usize {
    let lower =
        |text: &str| text.chars().take(COMPARED).flat_map(char::to_lowercase).collect::<String>();
    strsim::levenshtein(&lower(one), &lower(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["TestSet", "TestCase", "Project", "Execution"];

    #[test]
    fn the_nearest_word_has_the_fewest_different_characters() {
        for (text, expected) in [
            ("testset", ("TestSet", 0)),
            ("TestSte", ("TestSet", 2)),
            ("TstCase", ("TestCase", 1)),
            ("Executions", ("Execution", 1)),
            ("", ("TestSet", 7)),
        ] {
            assert_eq!(nearest(text, KNOWN.into_iter()), Some(expected), "{text}");
        }
        assert_eq!(nearest("a", std::iter::empty()), None);
        assert_eq!(distance(&"x".repeat(10_000), "x"), COMPARED - 1);
    }

    #[test]
    fn only_a_typing_error_makes_a_misspelt_word() {
        assert_eq!(misspelt("TestSte", KNOWN.into_iter()), Some("TestSet"));
        assert_eq!(misspelt("Deployment", KNOWN.into_iter()), None);
        assert_eq!(misspelt("Build", KNOWN.into_iter()), None);
    }
}
