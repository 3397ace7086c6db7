//! Uploads by the protocol tus whose first bytes are in the request that begins them.

use std::fs;

use assay_testkit::Answer;
use reqwest::Method;
use serde_json::json;

use super::{
    ABC, download, repr_digest,
    resumable::{append, client_folder, file, metadata, tus, write_file},
};
use crate::{customer::Customer, documents::node, world::create_project};

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_begins_with_its_first_bytes() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let create = |size: u64| {
        let request = tus(api, Method::POST, &format!("{project}/uploads"));
        let request = request.header("Upload-Length", size);
        let request = request.header("Upload-Metadata", metadata("a.img"));
        request.header("Content-Type", "application/offset+octet-stream")
    };
    let whole = Answer::of(create(3).header("Repr-Digest", repr_digest(ABC)).body("abc")).await;
    assert_eq!(whole.created()["Offset"], 3);
    assert_eq!(whole.headers["upload-offset"], "3");
    let stored = file(api, &whole.headers).await;
    assert_eq!(download(api, &stored, &[]).await.expect(200).body, b"abc");

    let beginning = Answer::of(create(6).body("abc")).await;
    assert_eq!(beginning.expect(201).headers["upload-offset"], "3");
    let upload = beginning.headers["location"].to_str().unwrap();
    let last = append(api, upload, 3, "def").await;
    let stored = file(api, &last.expect(204).headers).await;
    assert_eq!(download(api, &stored, &[]).await.expect(200).body, b"abcdef");

    Answer::of(create(2).body("abc")).await.is_problem(413, "too_large");
    Answer::of(create(3).header("Repr-Digest", repr_digest(ABC)).body("abd"))
        .await
        .is_problem(422, "invalid");
    let damaged = create(6).header("Upload-Checksum", "sha1 qZk+NkcGgWq6PiVxeFDCbJzQ2J0=");
    Answer::of(damaged.body("abd")).await.is_problem(460, "checksum_mismatch");
    assert_eq!(api.get(&format!("{project}/files")).await.ok().as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_client_of_npm_sends_the_first_bytes_when_it_begins() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let project = create_project(api).await;
    let folder = client_folder();
    let endpoint = format!("{}{project}/uploads", customer.url().trim_end_matches('/'));
    // The whole file, and parts of it.
    for chunk_size in ["Infinity", "3000000"] {
        let sha256 = write_file(&folder.join("pad.img"), 8).await;
        let mut client = node(&folder);
        client.arg("client.mjs").env("ENDPOINT", &endpoint).env("TOKEN", api.token());
        client.env("FILE", "pad.img").env("CHUNK_SIZE", chunk_size).env("AT_ONCE", "true");
        let ran = client.output().await.unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let uploaded = String::from_utf8(ran.stdout).unwrap();
        let stored = api.get(&format!("{project}/files/{}", uploaded.trim())).await.ok();
        assert_eq!((&stored["Size"], &stored["Sha256"]), (&json!(8 << 20), &json!(sha256)));
    }
    fs::remove_dir_all(&folder).unwrap();
}
