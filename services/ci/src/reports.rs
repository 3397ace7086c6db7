//! Reports with the files that belong to them.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use assay_formats::allure::is_result;

use crate::{
    contents::{Contents, Outcome},
    files::File,
};

/// Maximum size of the files of one request, in bytes. Assay accepts 32 MiB; the rest is for the
/// form around them.
pub(crate) const MAX_REQUEST: u64 = 31 << 20;

/// Maximum number of files in one request.
pub(crate) const MAX_FILES: usize = 10_000;

/// Maximum number of attachments of a report.
const MAX_ATTACHMENTS: usize = 1000;

/// A file of a form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// Name of the field.
    pub(crate) field: &'static str,
    /// Name of the file: for an attachment, the path in the report.
    pub(crate) name: String,
    pub(crate) file: File,
}

/// Files that only one request can have: a report with its attachments, or a folder of Allure
/// results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    pub(crate) parts: Vec<Part>,
    pub(crate) is_folder: bool,
    /// Its tests, as far as it can be read.
    pub(crate) tests: BTreeMap<String, Outcome>,
}

impl Report {
    pub(crate) fn size(&self) -> u64 {
        self.parts.iter().map(|part| part.file.size).sum()
    }
}

/// Returns the reports that the files are, with their attachments if they are wanted.
pub(crate) fn reports(files: Vec<File>, with_attachments: bool) -> anyhow::Result<Vec<Report>> {
    let folders: BTreeSet<PathBuf> = files
        .iter()
        .filter(|file| is_result(&base_name(&file.path)))
        .filter_map(|file| file.path.parent().map(Path::to_owned))
        .collect();
    let (mut reports, mut of_folders) = (Vec::new(), BTreeMap::<_, Vec<_>>::new());
    for file in files {
        let part = Part { field: "file", name: base_name(&file.path), file };
        let folder = part.file.path.parent().filter(|folder| folders.contains(*folder));
        if let Some(folder) = folder.map(Path::to_owned) {
            if is_of_folder(&part.file.path, &folder)? {
                of_folders.entry(folder).or_default().push(part);
            } else {
                let path = part.file.path.display();
                tracing::warn!("{path} is left out: it is hidden, or a link to a file elsewhere");
            }
            continue;
        }
        // The upload names a file that cannot be opened.
        let Contents { tests, paths } = Contents::of_file(&part.file).unwrap_or_default();
        let attached = if with_attachments { attachments(&part.file, paths)? } else { Vec::new() };
        let parts = [part].into_iter().chain(attached).collect();
        reports.push(Report { parts, is_folder: false, tests });
    }
    for (folder, parts) in of_folders {
        let files = parts.iter().map(|part| (part.name.as_str(), &part.file));
        let Contents { tests, .. } = Contents::of_folder(files);
        let report = Report { parts, is_folder: true, tests };
        anyhow::ensure!(
            report.size() <= MAX_REQUEST && report.parts.len() <= MAX_FILES,
            "{} has more than {} MiB or {MAX_FILES} files; upload a zip archive of it",
            folder.display(),
            MAX_REQUEST >> 20
        );
        reports.push(report);
    }
    Ok(reports)
}

/// Returns the attachments of a report that fit into a request with it, the smallest ones first.
fn attachments(report: &File, paths: BTreeSet<String>) -> anyhow::Result<Vec<Part>> {
    let roots = roots(&report.path)?;
    let mut found: Vec<Part> =
        paths.into_iter().filter_map(|path| attachment(path, &roots)).collect();
    found.sort_by_key(|part| part.file.size);
    let (count, mut size) = (found.len(), report.size);
    let fitting = |part: &Part| {
        size += part.file.size;
        size <= MAX_REQUEST
    };
    let found: Vec<Part> = found.into_iter().take_while(fitting).take(MAX_ATTACHMENTS).collect();
    if found.len() < count {
        let left_out = count - found.len();
        tracing::warn!(
            "{left_out} of {count} attachments of {} are left out: a report and its attachments \
             have at most {} MiB",
            report.path.display(),
            MAX_REQUEST >> 20
        );
    }
    Ok(found)
}

/// Returns the folders that paths of attachments may start from: the current one, and those from
/// the folder of the report up to it.
fn roots(report: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let current = env::current_dir()?.canonicalize()?;
    let report = report.canonicalize()?;
    let folder = report.parent().unwrap_or(&report);
    let mut roots = vec![current.clone(), folder.to_owned()];
    roots.extend(
        folder
            .ancestors()
            .skip(1)
            .take_while(|above| above.starts_with(&current))
            .map(Path::to_owned),
    );
    Ok(roots)
}

/// Returns whether a file in a folder of results is one of it: tests write the folder, and could put links into it.
fn is_of_folder(file: &Path, folder: &Path) -> anyhow::Result<bool> {
    // The path of a folder may be a name only.
    let folder = Path::new(".").join(folder).canonicalize()?;
    Ok(shown(file, &[env::current_dir()?.canonicalize()?, folder]).is_some())
}

/// Returns the attachment with this path.
fn attachment(path: String, roots: &[PathBuf]) -> Option<Part> {
    let file = roots.iter().find_map(|root| shown(&root.join(&path), roots))?;
    Some(Part { field: "attachment", name: path, file })
}

/// Returns the file with a path, unless it is outside of the folders or hidden in them, such as
/// `.git/config`: a report must not make a job upload its secrets.
fn shown(path: &Path, roots: &[PathBuf]) -> Option<File> {
    let path = path.canonicalize().ok()?;
    let is_inside = roots.iter().any(|root| path.strip_prefix(root).is_ok_and(is_shown));
    let metadata = fs::metadata(&path).ok()?;
    let fits = is_inside && metadata.is_file() && metadata.len() > 0;
    fits.then_some(File { path, size: metadata.len() })
}

/// Returns whether neither a file nor one of its folders is hidden.
fn is_shown(path: &Path) -> bool {
    !path.iter().any(|part| part.as_encoded_bytes().starts_with(b"."))
}

fn base_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_looked_up_beside_the_report_and_above_and_not_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("work");
        fs::create_dir_all(root.join("results")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        for name in ["work/results/beside.png", "work/above.png", "work/.git/config", "secret"] {
            fs::write(folder.path().join(name), "1").unwrap();
        }
        let report = root.join("results/junit.xml");
        let paths = [
            "beside.png",
            "above.png",
            ".git/config",
            "../.git/config",
            "../../secret",
            "missing.png",
        ];
        let absolute = folder.path().join("secret").display().to_string();
        let paths: Vec<_> = paths.into_iter().chain([absolute.as_str()]).collect();
        let list: Vec<_> = paths.iter().map(|path| format!("[[ATTACHMENT|{path}]]")).collect();
        let list = list.join("\n");
        let text = format!(
            "<testsuite><testcase name=\"t\"><system-out>{list}</system-out></testcase></testsuite>"
        );
        fs::write(&report, &text).unwrap();

        let roots = vec![root.clone(), root.join("results")];
        let found: Vec<_> = paths
            .iter()
            .filter_map(|path| attachment((*path).to_owned(), &roots))
            .map(|part| part.name)
            .collect();
        assert_eq!(found, ["beside.png", "above.png"]);

        let report = File { path: report, size: text.len() as u64 };
        let paths = Contents::of_file(&report).unwrap().paths;
        let found: Vec<_> =
            attachments(&report, paths).unwrap().into_iter().map(|part| part.name).collect();
        assert_eq!(found, ["beside.png"], "the current folder is elsewhere");
    }

    #[test]
    fn a_folder_of_results_has_no_links_to_files_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("allure");
        fs::create_dir(&results).unwrap();
        for name in ["secret", "allure/1-result.json", "allure/2-shot.png", "allure/.env"] {
            fs::write(folder.path().join(name), "{}").unwrap();
        }
        for (link, target) in [("3-log.txt", "../secret"), ("4-log.txt", "2-shot.png")] {
            std::os::unix::fs::symlink(target, results.join(link)).unwrap();
        }
        let names = ["1-result.json", "2-shot.png", ".env", "3-log.txt", "4-log.txt"];
        let files = names.map(|name| File { path: results.join(name), size: 2 });

        let reports = reports_of(files.into());

        let names: Vec<_> = reports[0].parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!((reports.len(), names), (1, vec!["1-result.json", "2-shot.png", "4-log.txt"]));
    }

    fn reports_of(files: Vec<File>) -> Vec<Report> {
        reports(files, false).unwrap()
    }
}
