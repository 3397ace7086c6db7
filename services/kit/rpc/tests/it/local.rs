//! Calls between programs of one process.

use std::time::Duration;

use assay_runtime::{Process, Runtime};
use assay_testkit::eventually;
use tokio::net::TcpListener;
use tonic::Code;

use crate::world::{Client, Conduct, Program, measured};

/// Starts a program, and creates its client in another program of the same process.
async fn neighbours() -> (Program, Client) {
    let process = Process::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let program = Program::start_with(Runtime::within(&process, "settings"), listener);
    let url = format!("http://{}", program.address);
    let client = Client::from(&Runtime::within(&process, "client"), &url);
    (program, client)
}

#[tokio::test]
async fn calls_within_a_process_use_no_connection() {
    let (program, client) = neighbours().await;
    assert_eq!(client.read().await.unwrap(), "settings");
    assert_eq!(*program.calls.remote.lock().unwrap(), None);

    let other = Client::of(program.address);
    assert_eq!(other.read().await.unwrap(), "settings");
    assert!(program.calls.remote.lock().unwrap().is_some());
}

#[tokio::test]
async fn a_call_within_a_process_ends_at_its_deadline() {
    let (program, client) = neighbours().await;
    program.conduct.send_replace(Conduct::Works);
    let late = client.read_within(Duration::from_millis(100));
    let (late, _) = measured("a late call", late).await;
    assert_eq!(late.unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(program.calls.open(), 0);
}

#[tokio::test]
async fn a_stopped_program_is_not_called_within_its_process() {
    let (program, client) = neighbours().await;
    client.read().await.unwrap();
    program.runtime.stop(Duration::from_secs(5)).await.unwrap();
    let refused = async || client.read().await.err();
    let error = eventually("a refused call", refused).await;
    assert_eq!(error.code(), Code::Unavailable);
}
