//! Uploads by the protocol tus whose first bytes are in the request that begins them.

use assay_testkit::Answer;
use reqwest::Method;

use super::{
    ABC,
    client::upload_by_client,
    download, repr_digest,
    resumable::{append, file, metadata, tus},
};
use crate::{customer::Customer, world::create_project};

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
    let project = create_project(&customer.api).await;
    // The whole file, and parts of it.
    for chunk_size in ["Infinity", "3000000"] {
        upload_by_client(&customer, &project, chunk_size, "AT_ONCE").await;
    }
}
