//! Uploads of one large file through the gateway, against writing and syncing the same bytes to the same disk.

use std::{
    fs::{self, File},
    io::Write,
    path::Path,
    time::Instant,
};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};

use super::measurement::Measurement;
use crate::{
    client::{Client, Connection, Prepared, id, prepare, prepare_with},
    fixture::create_project,
    report::{Figure, Section, Unit},
    shape::Shape,
};

/// Size of the file, in bytes.
const SIZE: usize = 1 << 30;

/// Size of the requests by tus, in bytes.
const PART: usize = 16 << 20;

/// Size of the pieces that are written to the disk, in bytes.
const PIECE: usize = 1 << 20;

const MEGA: f64 = 1e6;

const FILE_NAME: HeaderName = HeaderName::from_static("x-file-name");
const RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const LENGTH: HeaderName = HeaderName::from_static("upload-length");
const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const METADATA: HeaderName = HeaderName::from_static("upload-metadata");

pub(super) async fn measure(to: &mut Measurement<'_>) -> Result<()> {
    let bytes = bytes();
    to.system.rest().await;
    if to.system.shape == Shape::Baseline {
        for way in [Way::Whole, Way::Tus] {
            let seconds = write(to.system.dir(), &bytes)?;
            add(to, way, seconds);
        }
        return Ok(());
    }
    let client = to.system.client();
    for (way, of) in [(Way::Whole, "an upload of 1 GiB"), (Way::Tus, "an upload of 1 GiB by tus")] {
        // A project has equal files once.
        let project = create_project(&client, "Files").await?;
        to.forget_peaks()?;
        let began = Instant::now();
        match way {
            Way::Whole => upload(&client, &project, &bytes).await?,
            Way::Tus => upload_by_tus(&client, &project, &bytes).await?,
        }
        add(to, way, began.elapsed().as_secs_f64());
        to.peaks(of)?;
        check_and_delete(&client, &project).await?;
        to.system.rest().await;
    }
    Ok(())
}

/// The way of a file to the store.
#[derive(Clone, Copy)]
enum Way {
    Whole,
    Tus,
}

fn add(to: &mut Measurement<'_>, way: Way, seconds: f64) {
    let name = match way {
        Way::Whole => "file of 1 GiB in one request, against a disk",
        Way::Tus => "file of 1 GiB by tus in parts of 16 MiB, against a disk",
    };
    let figure = Figure::new(Section::Batches, name, Unit::Megabytes).with_goal("0.6");
    to.report.add(figure, to.system.shape, to.round, SIZE as f64 / MEGA / seconds);
}

/// Returns the contents of the file, which no disk can compress.
fn bytes() -> Bytes {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(SIZE);
    while bytes.len() < SIZE {
        // Xorshift (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.into()
}

/// Writes a file and syncs it to the disk. Returns the seconds.
fn write(dir: &Path, bytes: &[u8]) -> Result<f64> {
    let path = dir.join("written");
    let began = Instant::now();
    let mut file = File::create(&path)?;
    bytes.chunks(PIECE).try_for_each(|piece| file.write_all(piece))?;
    file.sync_all()?;
    let seconds = began.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(seconds)
}

async fn upload(client: &Client, project: &str, bytes: &Bytes) -> Result<()> {
    let (path, media_type) = (format!("{project}/files"), "application/octet-stream");
    let request =
        prepare_with(&Method::POST, &path, &client.token, media_type, Some(bytes.clone()));
    client.count(with(request, [(FILE_NAME, "large.img".to_owned())])?).await
}

async fn upload_by_tus(client: &Client, project: &str, bytes: &Bytes) -> Result<()> {
    let version = || (RESUMABLE, "1.0.0".to_owned());
    let begin = prepare(&Method::POST, &format!("{project}/uploads"), &client.token, None);
    // The name is in base64.
    let name = (METADATA, "filename bGFyZ2UuaW1n".to_owned());
    let begin = with(begin, [version(), (LENGTH, SIZE.to_string()), name])?;
    let path = format!("{project}/uploads/{}", id(&client.send(begin).await?)?);
    let mut connection = Connection::open(client.address).await?;
    for offset in (0..SIZE).step_by(PART) {
        let part = bytes.slice(offset..(offset + PART).min(SIZE));
        let media_type = "application/offset+octet-stream";
        let request = prepare_with(&Method::PATCH, &path, &client.token, media_type, Some(part));
        let request = with(request, [version(), (OFFSET, offset.to_string())])?;
        let status = connection.count(request).await?.status;
        ensure!(status.is_success(), "{path} at {offset}: {status}");
    }
    Ok(())
}

fn with<const N: usize>(
    mut request: Prepared,
    headers: [(HeaderName, String); N],
) -> Result<Prepared> {
    for (name, value) in headers {
        request.headers_mut().insert(name, HeaderValue::try_from(value)?);
    }
    Ok(request)
}

/// Checks that the project has the file, and deletes it.
async fn check_and_delete(client: &Client, project: &str) -> Result<()> {
    let files = client.get(&format!("{project}/files")).await?;
    ensure!(files[0]["Size"] == SIZE, "the file is not stored: {files}");
    client.delete(&format!("{project}/files/{}", id(&files[0])?)).await?;
    Ok(())
}
