//! The files to upload.

use std::{collections::BTreeMap, fs, path::PathBuf};

use anyhow::Context;

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
}
