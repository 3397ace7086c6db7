//! The first session in the README, which ends on a page.

use std::{env, fs};

use tokio::process::Command;

use super::Reader;
use crate::{browser::Browser, customer::Customer, documents::at, people::password_of};

const README: &str = include_str!("../../../../../README.md");

/// The picture in the README. The test takes it if `UPDATE_SCREENSHOTS` is set.
const PICTURE: &str = "docs/first-session/console.png";

/// Returns the commands of the session, for an Assay and a user.
fn commands(url: &str, email: &str) -> String {
    let session = README.split_once("## A first session").unwrap().1;
    let session = session.split_once("\n## ").unwrap().0;
    let blocks = session.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    let commands = blocks.collect::<String>().replace(" | less", "");
    assert!(commands.contains("EMAIL=admin@assay.local\nPASSWORD='…'\n"), "{commands}");
    commands
        .replace("http://127.0.0.1:8080", url)
        .replace("admin@assay.local", email)
        .replace("'…'", &format!("'{}'", password_of(email)))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_session_of_the_readme_ends_on_a_page() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &commands(&reader.url, &reader.member.email)]);
    let output = bash.current_dir(at(".")).output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let page = printed.lines().last().unwrap().strip_prefix(&reader.url).unwrap();

    let picture = at(".").join(PICTURE);
    let browser = Browser::open_in((900, 900), false).await;
    reader.open(&browser, page).await;
    browser.read_until("h1", |text| text == "Every commit").await;
    browser.read_until(".tabs [aria-current]", |text| text == "2 New").await;
    if env::var_os("UPDATE_SCREENSHOTS").is_some() {
        fs::write(&picture, browser.client.screenshot().await.unwrap()).unwrap();
    }
    let size = fs::metadata(picture).unwrap().len();
    assert!(README.contains(PICTURE) && size < 100_000, "{size} bytes");
    browser.client.clone().close().await.unwrap();
}
