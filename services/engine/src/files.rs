//! The files of a lease: in a folder of the test, under their names.

use std::collections::HashSet;

use assay_proto::execution::{Lease, LeasedFile};
use tempfile::TempDir;
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
    pub(crate) async fn prepare(api: &Api, cache: &Cache, lease: &Lease) -> Result<Self, Failure> {
        if lease.files.is_empty() || !cache.is_enabled() {
            return Ok(Self::default());
        }
        let folder = cache.folder_of_test()?;
        let path = folder.path().display().to_string();
        let (mut variables, mut taken) = (Vec::new(), HashSet::new());
        for file in &lease.files {
            // The id becomes a part of paths.
            if Uuid::parse_str(&file.id).is_err() {
                return Err(Failure::unavailable(file, "its id is not a UUID"));
            }
            let name = name_of(file, &mut taken);
            cache.provide(api, &lease.id, file, &folder.path().join(&name)).await?;
            // Imported plans have ids as they were written, also in upper case.
            let is_named = |id: &String| id.eq_ignore_ascii_case(&file.id);
            let named = fields(lease).into_iter().filter(|(_, id)| id.is_some_and(is_named));
            variables.extend(named.map(|(variable, _)| (variable, format!("{path}/{name}"))));
        }
        variables.push(("FILES", path));
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
    // Some file systems ignore the case of names.
    if is_plain && taken.insert(file.name.to_lowercase()) {
        return file.name.clone();
    }
    file.id.clone()
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
        let id_of_another = "019cade2-11c0-7226-b375-01b542390176";
        assert_eq!(name(id_of_another, &mut taken), ID);
    }
}
