//! The room of an upload in one request whose connection breaks.

use assay_testkit::eventually;
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    customer::Customer,
    installation::Installation,
    world::{World, create_project, id},
};

/// Size of a file, of which only the beginning arrives.
const SIZE: i64 = 600 << 20;

/// Begins an upload over a connection of its own.
async fn begin(customer: &Customer, line: &str, headers: &str) -> TcpStream {
    let url = Url::parse(&customer.url()).unwrap();
    let authority = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let mut connection = TcpStream::connect(&authority).await.unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {}\r\n\
         Content-Length: {SIZE}\r\n{headers}\r\n\r\n",
        customer.api.token(),
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&[b'x'; 4096]).await.unwrap();
    connection
}

/// Waits until arriving files take this room.
async fn wait_for_room(database: &SecretString, table: &str, expected: i64) {
    let room = format!("select coalesce(sum(size), 0)::bigint from {table}");
    eventually(&format!("a room of {expected} bytes"), || async {
        let mut database = PgConnection::connect(database.expose_secret()).await.unwrap();
        let room = sqlx::query_scalar::<_, i64>(AssertSqlSafe(room.clone()));
        (room.fetch_one(&mut database).await.unwrap() == expected).then_some(())
    })
    .await;
}

/// The sweep, which would free it, comes a quarter of an hour later.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_whose_connection_breaks_frees_its_room_at_once() {
    let world = World::start().await;
    let customer = Customer::of(Installation::clone(&world)).await;
    let project = create_project(&customer.api).await;
    let opened = json!({"Project": "Shop", "TestSet": "Nightly"});
    let execution = customer.api.post("/api/executions", opened).await.created();
    let [catalog, executions] = world.catalog_and_execution();
    let artifact = format!("PUT /api/executions/{}/results/artifacts/run.webm", id(&execution));
    for (line, headers, database, table) in [
        (format!("POST {project}/files"), "X-File-Name: a.img", catalog, "stray_content"),
        (artifact, "Content-Type: video/webm", executions, "stray_file"),
    ] {
        let connection = begin(&customer, &line, headers).await;
        wait_for_room(database, table, SIZE).await;
        drop(connection);
        wait_for_room(database, table, 0).await;
    }
    world.stop().await;
}
