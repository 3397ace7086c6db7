//! The reports to upload.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::Context;

/// Maximum size of the files of one request, in bytes. Assay accepts 32 MiB; the rest is for the
/// form around them.
const MAX_REQUEST: u64 = 31 << 20;

/// Maximum number of files in one request.
const MAX_FILES: usize = 1000;

/// A file and its size in bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) size: u64,
}

/// Returns the files that match, each once, in the order of their paths.
pub(crate) fn find(patterns: &[String]) -> anyhow::Result<Vec<File>> {
    let mut files = BTreeMap::new();
    for pattern in patterns {
        let paths =
            glob::glob(pattern).with_context(|| format!("{pattern} is not a valid pattern"))?;
        for path in paths {
            let path = path?;
            let metadata = fs::metadata(&path).with_context(|| path.display().to_string())?;
            // Tools that have no results leave empty files.
            if metadata.is_file() && metadata.len() > 0 {
                files.insert(path, metadata.len());
            }
        }
    }
    Ok(files.into_iter().map(|(path, size)| File { path, size }).collect())
}

/// Divides files among requests. A file that is too large for any request is alone in one, which
/// Assay refuses with a reason.
pub(crate) fn requests(files: Vec<File>) -> Vec<Vec<File>> {
    let mut requests: Vec<Vec<File>> = Vec::new();
    let mut size = 0;
    for file in files {
        size += file.size;
        match requests.last_mut() {
            Some(last) if size <= MAX_REQUEST && last.len() < MAX_FILES => last.push(file),
            _ => {
                size = file.size;
                requests.push(vec![file]);
            }
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_match_are_found_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("shop")).unwrap();
        for (name, text) in [("b.xml", "b"), ("shop/a.xml", "aa"), ("c.xml", ""), ("d.txt", "d")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let pattern = |pattern: &str| folder.path().join(pattern).display().to_string();

        let found = find(&[pattern("**/*.xml"), pattern("b.xml")]).unwrap();

        let names: Vec<_> = found
            .iter()
            .map(|file| {
                (file.path.strip_prefix(folder.path()).unwrap().to_str().unwrap(), file.size)
            })
            .collect();
        assert_eq!(names, [("b.xml", 1), ("shop/a.xml", 2)]);
    }

    #[test]
    fn a_request_has_as_many_files_as_fit() {
        let file = |size| File { path: PathBuf::new(), size };
        let sizes: Vec<Vec<u64>> =
            requests([10 << 20, 20 << 20, 2 << 20, 40 << 20, 1].map(file).into())
                .iter()
                .map(|request| request.iter().map(|file| file.size).collect())
                .collect();
        assert_eq!(sizes, [vec![10 << 20, 20 << 20], vec![2 << 20], vec![40 << 20], vec![1]]);
    }
}
