//! The `assay` program: start, stop and kill.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use assay_testkit::{Api, eventually, test_dir};
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};
use uuid::Uuid;

use crate::junit::{report, upload};

pub(crate) const PASSWORD: &str = "a long enough passphrase";

/// A running `assay` that is ready.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) lines: Lines<BufReader<ChildStdout>>,
    /// The output until it was ready.
    pub(crate) startup_lines: Vec<String>,
    pub(crate) address: SocketAddr,
}

pub(crate) fn data_dir() -> PathBuf {
    test_dir().unwrap().join(Uuid::now_v7().to_string())
}

pub(crate) fn command(data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command
        .env("ASSAY_DATA_DIR", data)
        .env("ASSAY_HTTP_LISTEN", "127.0.0.1:0")
        .env("ASSAY_ADMIN_EMAIL", "ada@example.org")
        .env("ASSAY_ADMIN_PASSWORD", PASSWORD)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

impl Program {
    pub(crate) async fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut startup_lines = Vec::new();
        let mut address = None;
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, url)) = line.split_once("ready: http://") {
                address = url.trim_end_matches("/api").parse().ok();
            }
            startup_lines.push(line);
            if startup_lines.last().unwrap().contains("Ctrl-C") {
                break;
            }
        }
        if address.is_none() {
            let mut output = String::new();
            child.stderr.take().unwrap().read_to_string(&mut output).await.unwrap();
            panic!("not ready: {startup_lines:?}\n{output}");
        }
        Self { child, lines, startup_lines, address: address.unwrap() }
    }

    pub(crate) async fn log_in(&self, email: &str, password: &str) -> Api {
        let api = Api::new(format!("http://{}", self.address));
        let login = json!({"Email": email, "Password": password});
        let token = api.post("/api/token/login", login).await.ok();
        api.with_token(token["token"].as_str().unwrap())
    }

    pub(crate) async fn terminate(mut self) -> ExitStatus {
        let pid = self.child.id().unwrap().to_string();
        let killed = Command::new("kill").args(["-TERM", &pid]).status().await.unwrap();
        assert!(killed.success());
        let ended = self.child.wait().await.unwrap();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            println!("{line}");
        }
        ended
    }
}

/// The ids of processes with this data directory.
async fn processes_of(data: &Path) -> Vec<String> {
    let listed = Command::new("ps").args(["-e", "-o", "pid=,args="]).output().await.unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let ours = listed.lines().filter(|line| line.contains(data.to_str().unwrap()));
    ours.map(str::to_owned).collect()
}

#[tokio::test]
async fn assay_keeps_its_data_and_leaves_no_processes() {
    let data = data_dir();
    let program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    api.post("/api/projects", json!({"Name": "Kept"})).await.created();
    let traces = [api.get("/api/no").await, api.get("/api/no").await];
    let [one, other] = traces.map(|answer| answer.is_problem(404, "not_found")["traceId"].clone());
    assert!(one.is_string() && one != other, "each request is a separate trace");
    assert!(!processes_of(&data).await.is_empty(), "the servers are running");
    assert!(program.terminate().await.success());
    assert_eq!(processes_of(&data).await, Vec::<String>::new());

    let program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    assert_eq!(api.get("/api/projects").await.ok()[0]["Name"], "Kept");
    assert!(program.terminate().await.success());
}

#[tokio::test]
async fn keys_are_rotated_while_assay_runs() {
    let data = data_dir();
    // Settings from files apply to commands, too.
    let level = data.with_extension("level");
    std::fs::write(&level, "info\n").unwrap();
    let rotate = || command(&data).env("ASSAY_LOG_FILE", &level).arg("rotate-keys").output();
    let failed = rotate().await.unwrap();
    assert!(!failed.status.success(), "a new data directory has no keys to rotate");

    let program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let keys = async || {
        let keys = api.get("/.well-known/jwks.json").await.ok()["keys"].clone();
        keys.as_array().unwrap().len()
    };
    assert_eq!(keys().await, 1);
    let rotated = rotate().await.unwrap();
    assert!(rotated.status.success(), "{rotated:?}");
    eventually("the new key", || async { (keys().await == 2).then_some(()) }).await;
    api.get("/api/projects").await.ok();
    assert!(program.terminate().await.success());
}

#[tokio::test]
async fn a_generated_password_is_shown_once() {
    let data = data_dir();
    let without_password = || {
        let mut command = command(&data);
        command.env_remove("ASSAY_ADMIN_PASSWORD");
        command
    };
    let program = Program::start(without_password()).await;
    let shown =
        program.startup_lines.iter().find_map(|line| line.strip_prefix("Password:")).unwrap();
    let password = shown.split_whitespace().next().unwrap().to_owned();
    program.log_in("ada@example.org", &password).await.get("/api/projects").await.ok();
    program.terminate().await;

    let program = Program::start(without_password()).await;
    assert!(
        !program.startup_lines.iter().any(|line| line.contains(&password)),
        "{:?}",
        program.startup_lines
    );
    program.log_in("ada@example.org", &password).await.get("/api/projects").await.ok();
    program.terminate().await;
}

#[tokio::test]
async fn mails_are_written_to_the_data_directory_without_an_smtp_server() {
    let data = data_dir();
    let program = Program::start(command(&data)).await;
    let api = Api::new(format!("http://{}", program.address));
    let reset = json!({"UserEmail": "ada@example.org", "Host": ""});
    api.put("/api/users/reset/prepare", reset).await.ok();
    eventually("a mail", || async {
        let mut files = std::fs::read_dir(data.join("mail")).ok()?.flatten();
        files.any(|file| file.path().extension().is_some_and(|name| name == "eml")).then_some(())
    })
    .await;
    program.terminate().await;
}

#[tokio::test]
async fn an_error_at_the_start_is_reported_in_one_line() {
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let data = data_dir();
    let mut command = command(&data);
    command.env("ASSAY_HTTP_LISTEN", occupied.local_addr().unwrap().to_string());
    let failed = command.output().await.unwrap();
    let output = String::from_utf8(failed.stderr).unwrap();
    assert_eq!(output.lines().count(), 1, "{output}");
    assert!(output.contains("ASSAY_HTTP_LISTEN"), "{output}");
    assert!(!failed.status.success());
}

/// Kills the program repeatedly during the upload of a large report.
#[tokio::test]
async fn an_upload_is_atomic_when_the_program_is_killed() {
    const TESTS: usize = 2_000;
    let data = data_dir();
    let mut program = Program::start(command(&data)).await;
    let api = program.log_in("ada@example.org", PASSWORD).await;
    let project = api.post("/api/projects", json!({"Name": "Hit"})).await.created();
    let project = format!("/api/projects/{}", project["Id"].as_str().unwrap());
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "All"})).await.created();
    let set = format!("{project}/testsets/{}", set["Id"].as_str().unwrap());
    let report = report(TESTS);

    let mut acknowledged = 0;
    for patience in [20, 120, 250, 400, 700] {
        let api = program.log_in("ada@example.org", PASSWORD).await;
        let upload = upload(&api, &set, report.clone());
        if let Ok(answer) = timeout(Duration::from_millis(patience), upload).await {
            answer.created();
            acknowledged += 1;
        }
        program.child.kill().await.unwrap();
        program = Program::start(command(&data)).await;
    }

    let api = program.log_in("ada@example.org", PASSWORD).await;
    let executions = api.get(&format!("{project}/executions")).await.ok();
    let executions = executions.as_array().unwrap();
    assert!(executions.len() >= acknowledged, "an acknowledged upload is missing");
    for execution in executions {
        let path = format!("{project}/executions/{}", execution["Id"].as_str().unwrap());
        let details = api.get(&path).await.ok();
        assert_eq!(details["TestReports"].as_array().unwrap().len(), TESTS);
        assert_eq!(details["Statistic"]["TestCasesPassed"], TESTS);
    }
    // The next upload succeeds.
    upload(&api, &set, report).await.created();
    eventually("the projections", || async {
        let cases = api.get(&format!("{project}/testcases?limit=1")).await.ok();
        let expected = executions.len() + 1;
        let numbers = cases[0]["ExecutionStatistics"].as_array()?.len();
        (numbers == expected).then_some(())
    })
    .await;
    assert!(program.terminate().await.success());
}
