//! Blocks of commands in `docs/operations.md`. A function stands in for `docker`, and runs the programs of
//! containers on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use assay_testkit::eventually;
use tokio::process::Command;

use crate::fleet::{Fleet, SERVICES, Server, programs};

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");

/// After each dump, the script waits for the test.
const DOCKER: &str = r#"
number=0
docker() {
  case "$1 $2" in
  "cp -") tar --extract --directory="$ARTIFACTS" ;;
  cp*) tar --create --directory="$ARTIFACTS" . ;;
  "compose exec")
    shift 3; service=$1; shift
    if [[ $service == postgres ]]; then "${@/#--host=*/--host=$PGHOST}"; else
      url=URL_$service; ASSAY_DATABASE_URL=${!url} "$PROGRAMS/$@"
    fi
    if [[ $1 == pg_dump ]]; then
      number=$((number + 1)); touch "dumped-$number"
      until [[ -e go-on-$number ]]; do sleep 0.02; done
    fi ;;
  "compose run")
    shift 2
    while [[ $1 == -* && $1 != --entrypoint ]]; do shift; done
    if [[ $1 == --entrypoint ]]; then program=$2; shift 3; "$program" "$@"; else
      shift; ASSAY_DATABASE_URL=$URL "$PROGRAMS/assay" "$@"
    fi ;;
  "compose ps") echo execution ;;
  "compose up") ;;
  *) echo "docker $*: not known" >&2; return 1 ;;
  esac
}
"#;

/// A directory in which commands run.
pub(super) struct Directory(pub(super) PathBuf);

impl Directory {
    pub(super) fn new(path: PathBuf) -> Self {
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join(".env"), "").unwrap();
        Self(path)
    }

    /// Runs a block of a section, numbered from 0, after replacing some paths and times. Returns whether
    /// it was successful, and its output.
    pub(super) async fn run(
        &self,
        (section, number): (&str, usize),
        server: &Server,
        artifacts: &Path,
        replaced: &[(&str, &str)],
    ) -> (bool, String) {
        let mut block = block(section, number);
        for (from, to) in replaced {
            assert!(block.contains(from), "no {from} in {block}");
            block = block.replace(from, to);
        }
        let mut shell = Command::new("bash");
        shell
            .args(["-euo", "pipefail", "-c", &format!("{DOCKER}\n{block}")])
            .current_dir(&self.0)
            .envs(server.variables())
            .env("URL", server.url())
            .env("PROGRAMS", programs())
            .env("ARTIFACTS", artifacts);
        for service in SERVICES {
            shell.env(format!("URL_{service}"), server.url_of(service));
        }
        let done = shell.kill_on_drop(true).output().await.unwrap();
        let output = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8_lossy(&output).into_owned())
    }

    /// Waits until a number of databases are dumped.
    pub(super) async fn dumped(&self, number: usize) {
        let file = self.0.join(format!("dumped-{number}"));
        eventually("a dump", || async { file.exists().then_some(()) }).await;
    }

    /// Lets the script go on after a dump.
    pub(super) fn go_on(&self, number: usize) {
        fs::write(self.0.join(format!("go-on-{number}")), "").unwrap();
    }
}

/// Waits until a block that compares the databases finds no difference.
pub(super) async fn verified(
    directory: &Directory,
    block: (&str, usize),
    fleet: &Fleet,
    artifacts: &Path,
) {
    eventually("no differences", || async {
        let (done, output) = directory.run(block, &fleet.postgres, artifacts, &[]).await;
        println!("{output}");
        (done && output.contains("No differences. ")).then_some(())
    })
    .await;
}

/// Returns a block of shell commands in a section of the document.
fn block(section: &str, number: usize) -> String {
    let document = fs::read_to_string(DOCUMENT).unwrap();
    let heading = format!("### {section}\n");
    let (_, text) = document.split_once(&heading).unwrap_or_else(|| panic!("no {heading}"));
    let text = text.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks
        .map(str::to_owned)
        .nth(number)
        .unwrap_or_else(|| panic!("no block {number} in {section}"))
}
