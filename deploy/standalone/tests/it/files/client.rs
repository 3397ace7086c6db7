//! Uploads by the client of npm for the protocol tus.

use std::{
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use assay_testkit::test_dir;
use reqwest::Url;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinSet};
use uuid::Uuid;

use super::breaking::break_connections;
use crate::{
    customer::Customer,
    documents::{at, node},
    world::create_project,
};

/// Size of the file that the client of npm uploads, in MiB. `make large-files` uses a larger one.
const MEBIBYTES: &str = "64";

/// Uploads a file, and prints the headers of the last response.
const CLIENT: &str = "
import { createReadStream, statSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { Upload } from 'tus-js-client';
const { ENDPOINT, TOKEN, FILE, CHUNK_SIZE, AT_ONCE, DEFERRED } = process.env;
// A stream that is not a file has no size.
const input = DEFERRED === 'true' ? createReadStream(FILE).pipe(new PassThrough()) : createReadStream(FILE);
const upload = new Upload(input, {
  endpoint: ENDPOINT,
  headers: { Authorization: `Bearer ${TOKEN}` },
  metadata: { filename: 'pad 1.img', filetype: 'application/x-raw-disk-image' },
  uploadSize: DEFERRED === 'true' ? null : statSync(FILE).size,
  uploadLengthDeferred: DEFERRED === 'true',
  chunkSize: Number(CHUNK_SIZE ?? Infinity),
  uploadDataDuringCreation: AT_ONCE === 'true',
  retryDelays: Array(100).fill(100),
  onError: error => { console.error(error); process.exit(1); },
  onSuccess: ({ lastResponse }) => console.log(lastResponse.getHeader('Assay-File-Id')),
});
upload.start();
";

/// Returns a folder with the client of npm.
fn client_folder() -> PathBuf {
    let folder = test_dir().unwrap().join(Uuid::now_v7().to_string());
    fs::create_dir_all(&folder).unwrap();
    symlink(at("target/tools/node/node_modules"), folder.join("node_modules")).unwrap();
    fs::write(folder.join("client.mjs"), CLIENT).unwrap();
    folder
}

/// The file is larger than the memory of the client, and ten connections break.
#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_npm_uploads_over_connections_that_break() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let folder = client_folder();
    let mebibytes: u64 = mebibytes().parse().unwrap();
    let sha256 = write_file(&folder.join("pad.img"), mebibytes).await;

    let url = Url::parse(&customer.url()).unwrap();
    let gateway = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}{project}/uploads", listener.local_addr().unwrap());
    let (mut proxy, broken) =
        (JoinSet::new(), break_connections(10, usize::try_from(mebibytes << 20).unwrap() / 12));
    proxy.spawn(broken.clone().serve(listener, gateway));
    let mut client = node(&folder);
    client.arg("client.mjs").env("ENDPOINT", endpoint).env("TOKEN", api.token());
    let ran = client.env("FILE", "pad.img").output().await.unwrap();
    assert!(ran.status.success(), "{ran:?}");

    assert_eq!(broken.left(), 0, "all ten connections have broken");
    let uploaded = String::from_utf8(ran.stdout).unwrap();
    let stored = api.get(&format!("{project}/files/{}", uploaded.trim())).await.ok();
    assert_eq!((&stored["Name"], &stored["Size"]), (&json!("pad 1.img"), &json!(mebibytes << 20)));
    assert_eq!(stored["Sha256"], sha256);
    assert_eq!(stored["ContentType"], "application/x-raw-disk-image");
    fs::remove_dir_all(&folder).unwrap();
}

/// Uploads a file by the client of npm, with requests of this size and one of its options, and compares the stored one.
pub(super) async fn upload_by_client(
    customer: &Customer,
    project: &str,
    chunk_size: &str,
    option: &str,
) {
    let folder = client_folder();
    let sha256 = write_file(&folder.join("pad.img"), 8).await;
    let endpoint = format!("{}{project}/uploads", customer.url().trim_end_matches('/'));
    let mut client = node(&folder);
    client.arg("client.mjs").env("ENDPOINT", endpoint).env("TOKEN", customer.api.token());
    client.env("FILE", "pad.img").env("CHUNK_SIZE", chunk_size).env(option, "true");
    let ran = client.output().await.unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let uploaded = String::from_utf8(ran.stdout).unwrap();
    let stored = customer.api.get(&format!("{project}/files/{}", uploaded.trim())).await.ok();
    assert_eq!((&stored["Size"], &stored["Sha256"]), (&json!(8 << 20), &json!(sha256)));
    fs::remove_dir_all(&folder).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test has no configuration to be parsed")]
fn mebibytes() -> String {
    env::var("ASSAY_LARGE_FILE_MIB").unwrap_or_else(|_| MEBIBYTES.to_owned())
}

/// Writes a file of different mebibytes, and returns its SHA-256 in hexadecimal digits, as Node computes it.
async fn write_file(path: &Path, mebibytes: u64) -> String {
    const WRITE: &str = "
import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
const [path, mebibytes] = process.argv.slice(-2);
const [file, hash, chunk] = [openSync(path, 'w'), createHash('sha256'), Buffer.alloc(1 << 20)];
for (let n = 0; n < Number(mebibytes); n++) {
  chunk.fill(`${n * n}.`);
  hash.update(chunk);
  writeSync(file, chunk);
}
closeSync(file);
console.log(hash.digest('hex'));
";
    let folder = path.parent().unwrap();
    fs::write(folder.join("write.mjs"), WRITE).unwrap();
    let mut write = node(folder);
    let written = write.arg("write.mjs").arg(path).arg(mebibytes.to_string()).output().await;
    String::from_utf8(written.unwrap().stdout).unwrap().trim().to_owned()
}
