//! Boundaries of the crate: it knows only the public interface, and renders only escaped text.

use std::{env, fs, path::Path, process::Command};

#[test]
fn the_console_depends_on_no_contract_and_no_service() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none"])
        .args(["--package", env!("CARGO_PKG_NAME")])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"axum"), "{tree}");
    let excluded = |name: &&&str| {
        name.starts_with("tonic") || name.starts_with("assay-") && **name != "assay-console"
    };
    assert_eq!(names.iter().find(excluded), None);
}

#[test]
fn no_page_renders_text_without_escaping_it() {
    fn check(folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                check(&path);
            } else {
                let source = fs::read_to_string(&path).unwrap();
                assert!(!source.contains("PreEscaped"), "{}", path.display());
            }
        }
    }
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
}
