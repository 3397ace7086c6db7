//! The files of a lease: in a folder of the test, under their names.

use std::collections::HashSet;

use assay_proto::execution::{Lease, LeasedFile};
use futures::future::try_join_all;
use tempfile::TempDir;
use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

use crate::{api::Api, cache::Cache, download::Failure};

/// Maximum length of the name of a file, in bytes, on common file systems.
const LONGEST_NAME: usize = 255;

/// The files of a test on this machine, and the variables that lead to them.
#[derive(Default)]
pub(crate) struct Files {
    /// Removed at the end of the test.
    _folder: Option<TempDir>,
    /// Names without `ASSAY_`, and paths.
    variables: Vec<(&'static str, String)>,
}

impl Files {
    /// Downloads the files of a lease, or takes them from the cache.
    pub(crate) async fn prepare(
        api: &Api,
        cache: Option<&Cache>,
        lease: &Lease,
    ) -> Result<Self, Failure> {
        let Some(cache) = cache.filter(|_| !lease.files.is_empty()) else {
            return Ok(Self::default());
        };
        let folder = cache.folder_of_test()?;
        let path = folder.path().display().to_string();
        let (mut variables, mut taken) = (Vec::new(), HashSet::new());
        let mut places = Vec::new();
        for file in &lease.files {
            // The id becomes a part of paths.
            if Uuid::parse_str(&file.id).is_err() {
                return Err(Failure::unavailable(file, "its id is not a UUID"));
            }
            let name = name_of(file, &mut taken);
            places.push((file, folder.path().join(&name)));
            // Imported plans have ids as they were written, also in upper case.
            let is_named = |id: &String| id.eq_ignore_ascii_case(&file.id);
            let named = fields(lease).into_iter().filter(|(_, id)| id.is_some_and(is_named));
            variables.extend(named.map(|(variable, _)| (variable, format!("{path}/{name}"))));
        }
        variables.push(("FILES", path));
        let provided = places.iter().map(|(file, to)| cache.provide(api, &lease.id, file, to));
        try_join_all(provided).await?;
        Ok(Self { _folder: Some(folder), variables })
    }

    /// Returns the value of a variable for the command; none if the test has no such file.
    pub(crate) fn path(&self, variable: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(name, _)| *name == variable);
        found.map(|(_, path)| path.as_str())
    }
}

/// Variables with the paths of files, without `ASSAY_`. The first is the folder with all of them.
pub(crate) const VARIABLES: [&str; 10] = [
    "FILES",
    "INPUT_FILE",
    "SUPPORTING_FILES",
    "AUTOMATION_SUPPORTING_FILES",
    "AUTOMATED_TEST_CONTAINER",
    "SOFTWARE_FILE",
    "INSTALLATION_FILE",
    "INSTRUCTION_FILE",
    "FRAMEWORK_FILE",
    "IMAGE_FILE",
];

/// Returns the variables of the fields that may name a file, and the names.
fn fields(lease: &Lease) -> [(&'static str, Option<&String>); 9] {
    let (plan, subject) = (lease.test_plan.as_ref(), lease.subject.as_ref());
    let of_environment = lease.environment.as_ref().and_then(|it| it.image_file_id.as_ref());
    [
        ("INPUT_FILE", plan.and_then(|it| it.input_file_id.as_ref())),
        ("SUPPORTING_FILES", plan.and_then(|it| it.supporting_files_id.as_ref())),
        (
            "AUTOMATION_SUPPORTING_FILES",
            plan.and_then(|it| it.automation_supporting_files_id.as_ref()),
        ),
        ("AUTOMATED_TEST_CONTAINER", plan.and_then(|it| it.automated_test_container_id.as_ref())),
        ("SOFTWARE_FILE", subject.and_then(|it| it.software_file_id.as_ref())),
        ("INSTALLATION_FILE", subject.and_then(|it| it.installation_file_id.as_ref())),
        ("INSTRUCTION_FILE", subject.and_then(|it| it.instruction_file_id.as_ref())),
        ("FRAMEWORK_FILE", subject.and_then(|it| it.framework_file_id.as_ref())),
        ("IMAGE_FILE", of_environment),
    ]
}

/// Returns the name of a file in the folder of a test: its own, or its id if that is not the plain name of a
/// file, may be the id of another file, or another file has it.
fn name_of(file: &LeasedFile, taken: &mut HashSet<String>) -> String {
    let is_plain = !file.name.is_empty()
        && file.name.len() <= LONGEST_NAME
        && !matches!(file.name.as_str(), "." | "..")
        && !file.name.contains(|char: char| matches!(char, '/' | '\\') || char.is_control())
        && Uuid::parse_str(&file.name).is_err();
    if is_plain && taken.insert(folded(&file.name)) {
        return file.name.clone();
    }
    file.id.clone()
}

/// Returns what names have in common that are those of one file on some file systems, which ignore their case and their
/// Unicode normalization.
fn folded(name: &str) -> String {
    name.nfd().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfd().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "019cade2-11c0-7226-b375-01b542390175";

    fn name(name: &str, taken: &mut HashSet<String>) -> String {
        let file = LeasedFile { id: ID.to_owned(), name: name.to_owned(), ..LeasedFile::default() };
        name_of(&file, taken)
    }

    #[test]
    fn files_have_their_names_unless_these_are_paths_or_taken() {
        let mut taken = HashSet::new();
        for plain in ["shop.msi", "Prüfplan (2).pdf", ".profile", "a..b"] {
            assert_eq!(name(plain, &mut taken), plain);
        }
        let long = "ä".repeat(128);
        for other in
            ["", ".", "..", "../x", "/etc/passwd", "a\\b", "a\0", "a\nb", "SHOP.msi", &long]
        {
            assert_eq!(name(other, &mut taken), ID, "{other:?}");
        }
        for same in ["Pru\u{308}fplan (2).pdf", "PR\u{dc}FPLAN (2).PDF", "PRU\u{308}FPLAN (2).pdf"]
        {
            assert_eq!(name(same, &mut taken), ID, "{same:?}");
        }
        assert_eq!(name("stra\u{df}e", &mut taken), "stra\u{df}e");
        assert_eq!(name("STRASSE", &mut taken), ID);
        let id_of_another = "019cade2-11c0-7226-b375-01b542390176";
        assert_eq!(name(id_of_another, &mut taken), ID);
    }
}
