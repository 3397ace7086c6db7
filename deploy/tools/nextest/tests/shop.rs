//! All that a test of Rust can say to nextest.

use std::{fs, path::Path, process, thread, time::Duration};

#[test]
fn passes() {
    println!("to stdout: <b>&amp;</b> ✓");
    eprintln!("to stderr: \x1b[31mred\x1b[0m");
}

#[test]
fn fails() {
    assert_eq!("Ann", "Bob", "names ≠ <&> ]]>\nsecond line");
}

#[test]
fn returns_an_error() -> Result<(), String> {
    Err("no shop".to_owned())
}

#[test]
#[ignore = "no <printer>"]
fn is_ignored() {}

#[test]
#[should_panic(expected = "shop")]
fn panics_as_expected() {
    panic!("no shop");
}

#[test]
#[should_panic]
fn passes_unexpectedly() {}

#[test]
fn aborts() {
    process::abort();
}

#[test]
fn exits() {
    process::exit(3);
}

#[test]
fn hangs() {
    thread::sleep(Duration::from_secs(60));
}

#[test]
fn leaks() {
    process::Command::new("sleep").arg("2").spawn().unwrap();
}

/// Fails once without a marker file, and then passes.
#[test]
fn is_flaky() {
    let first = !Path::new("marker").exists();
    fs::write("marker", "").unwrap();
    assert!(!first, "first attempt");
}

mod ünïcode {
    #[test]
    fn is_nested() {}
}
