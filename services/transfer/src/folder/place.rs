//! Paths of the files of an export. There is no other way to name a file of it.

use std::{borrow::Cow, fmt};

use anyhow::{Result, ensure};
use assay_client::visible;
use serde::Serialize;
use uuid::Uuid;

/// Maximum length of a name, in bytes.
const LONGEST: usize = 200;

/// Folders of the executions, and of the files of the project.
const EXECUTIONS: &str = "executions";
const STORED_FILES: &str = "storedfiles";

/// The folders of an export.
pub(super) const FOLDERS: [&str; 2] = [EXECUTIONS, STORED_FILES];

/// The files of an execution.
const RESULTS: &str = "results.ndjson";
const REVIEWS: &str = "reviews.ndjson";
const FILES: &str = "files.ndjson";

/// A name that is neither a path nor hidden: of an execution, or of one of its files.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub(crate) struct Name(String);

/// The path of a file within an export.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Place(Cow<'static, str>);

impl Name {
    /// Returns a text as a name. Fails if it has other characters than names of artifacts.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let is_name = (1..=LONGEST).contains(&text.len()) && text.bytes().all(fits);
        ensure!(
            is_name && !text.starts_with('.'),
            "{:?} is not a valid name: it must have 1 to {LONGEST} letters, digits, `.`, `_` and `-`, \
             and not begin with `.`",
            visible(text)
        );
        Ok(Self(text.to_owned()))
    }

    /// Returns the name with a part before it, without its beginning if both are too long.
    pub(crate) fn with_prefix(&self, prefix: &Self) -> Self {
        let fits = LONGEST.saturating_sub(prefix.0.len() + 1).min(self.0.len());
        Self(format!("{prefix}-{}", &self.0[self.0.len() - fits..]))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Uuid> for Name {
    fn from(id: Uuid) -> Self {
        Self(id.to_string())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Place {
    /// Returns a file at the top of an export.
    pub(super) const fn top(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    pub(crate) fn results(execution: &Name) -> Self {
        Self::of(execution, RESULTS)
    }

    pub(crate) fn reviews(execution: &Name) -> Self {
        Self::of(execution, REVIEWS)
    }

    /// Returns the list of the files of an execution.
    pub(crate) fn files(execution: &Name) -> Self {
        Self::of(execution, FILES)
    }

    /// Returns a file of an execution.
    pub(crate) fn file(execution: &Name, name: &Name) -> Self {
        Self(format!("{EXECUTIONS}/{execution}/files/{name}").into())
    }

    /// Returns the contents of a file of the project.
    pub(crate) fn stored_file(id: Uuid) -> Self {
        Self(format!("{STORED_FILES}/{id}").into())
    }

    fn of(execution: &Name, file: &str) -> Self {
        Self(format!("{EXECUTIONS}/{execution}/{file}").into())
    }

    /// Returns the file with a path. Fails if an export has no such file.
    pub(super) fn parse(path: &str) -> Result<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let place = match parts[..] {
            [name] => super::NOUNS.iter().find(|noun| noun.as_str() == name).cloned(),
            [EXECUTIONS, id, file @ (RESULTS | REVIEWS | FILES)] => {
                Some(Self::of(&Name::parse(id)?, file))
            }
            [STORED_FILES, id] => Uuid::try_parse(id)
                .ok()
                .map(Self::stored_file)
                .filter(|place| place.as_str() == path),
            [EXECUTIONS, id, "files", name] => {
                Some(Self::file(&Name::parse(id)?, &Name::parse(name)?))
            }
            _ => None,
        };
        place.ok_or_else(|| anyhow::anyhow!("{} is not a path within an export", visible(path)))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path until the file is complete. It is not that of another file: names do not begin
    /// with `.`, and no other file ends with `.part`.
    pub(super) fn draft(&self) -> String {
        match self.0.rsplit_once("/files/") {
            Some((folder, name)) => format!("{folder}/files/.{name}.part"),
            None => format!("{self}.part"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_files_are_parsed_as_they_are_made() {
        let (id, name) = (Name::parse("kiwi-4").unwrap(), Name::parse("a.png").unwrap());
        let noun = super::super::PROJECT;
        let places = [
            noun,
            Place::results(&id),
            Place::reviews(&id),
            Place::files(&id),
            Place::file(&id, &name),
            Place::stored_file(Uuid::now_v7()),
        ];
        for place in places {
            assert_eq!(Place::parse(place.as_str()).unwrap(), place);
        }
    }

    #[test]
    fn other_paths_are_refused() {
        for path in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "project.ndjson/",
            "manifest.json",
            "files.ndjson",
            "executions",
            "executions/a",
            "executions//files.ndjson",
            "executions/../files.ndjson",
            "executions/a/other.ndjson",
            "executions/a/files/..",
            "executions/a/files/.x.part",
            "executions/a/files/b/c",
            "executions/a/files/b\0",
            "executions\\a\\files.ndjson",
            "storedfiles",
            "storedfiles/a",
            "storedfiles/..",
            "storedfiles/019cade2-11c0-7226-b375-01b542390175/a",
            "storedfiles/019cade2-11c0-7226-b375-01b542390175.part",
            "storedfiles/019CADE2-11c0-7226-b375-01b542390175",
            "storedfiles/019cade211c07226b37501b542390175",
        ] {
            assert!(Place::parse(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_draft_is_not_another_file() {
        let (id, name) = (Name::parse("1").unwrap(), Name::parse("a").unwrap());
        let draft = Place::file(&id, &name).draft();
        assert_ne!(draft, Place::file(&id, &Name::parse("a.part").unwrap()).as_str());
        assert!(Place::parse(&draft).is_err());
        let draft = Place::stored_file(Uuid::nil()).draft();
        assert!(Place::parse(&draft).is_err());
    }

    #[test]
    fn long_names_keep_their_end() {
        let (prefix, long) = (Name::parse("0123").unwrap(), "x".repeat(LONGEST - 4) + ".png");
        let name = Name::parse(&long).unwrap().with_prefix(&prefix);
        assert_eq!(name.as_str().len(), LONGEST);
        assert!(name.as_str().starts_with("0123-x") && name.as_str().ends_with("x.png"));
        assert_eq!(Name::parse("a").unwrap().with_prefix(&prefix).as_str(), "0123-a");
    }
}
