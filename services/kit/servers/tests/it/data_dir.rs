//! Locks of data directories.

use assay_servers::DataDir;

use crate::{lock, reachable_dir};

#[test]
fn a_data_directory_is_locked_by_one_process() {
    let dir = reachable_dir();
    let first = lock(&dir);

    let refusal = DataDir::lock(dir.path()).expect_err("the directory is locked").to_string();
    let (shown, pid) = (dir.path().display(), std::process::id());
    assert!(refusal.contains(&format!("another assay uses {shown} (pid {pid})")), "{refusal}");

    drop(first);
    lock(&dir);
}
