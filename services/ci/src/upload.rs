//! Uploads reports, several in one request.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use assay_client::{Client, ClientError, Foreign};
use futures::TryStreamExt;
use reqwest::{
    Body, Method,
    multipart::{self, Form},
};
use serde::Deserialize;
use tokio_util::io::ReaderStream;

use crate::{
    execution::Execution,
    files::File,
    reports::{Part, Report},
    requests::{Request, requests},
};

/// Interval between lines about the progress of an upload.
const PROGRESS: Duration = Duration::from_secs(5);

/// Maximum size of the response to a report, in bytes, and number of its notes that are logged.
const LARGEST_ANSWER: u64 = 4 << 20;
const MAX_NOTES: usize = 100;

/// The response to a report.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Reported {
    accepted: u64,
    #[serde(default)]
    notes: Vec<Foreign>,
}

/// Uploads reports to an open execution, and returns the number of new results.
pub(crate) async fn upload(
    client: &Client,
    execution: &Execution,
    reports: Vec<Report>,
    query: &[(&str, String)],
) -> anyhow::Result<u64> {
    let sizes = reports.iter().flat_map(|report| &report.parts).map(|part| part.file.size);
    let (count, total) = (sizes.clone().count(), sizes.sum());
    let path = format!("{}/reports", execution.path());
    let (mut sent, mut bytes, mut new) = (0, 0, 0_u64);
    for Request { parts, nr } in requests(reports) {
        let query = query_of(query, nr);
        for Part { file, .. } in &parts {
            // A missing file would otherwise look like a broken connection.
            std::fs::File::open(&file.path).with_context(|| file.path.display().to_string())?;
        }
        let request = |client: &Client| {
            let form =
                parts.iter().fold(Form::new(), |form, part| form.part(part.field, body(part)));
            Ok(client.request(Method::POST, &path)?.query(&query).multipart(form))
        };
        let response = client.send_reliably(request).await.map_err(|error| named(error, &parts))?;
        let reported = response.json::<Reported>(LARGEST_ANSWER).await?;
        new = new.saturating_add(reported.accepted);
        reported.notes.iter().take(MAX_NOTES).for_each(|note| tracing::warn!("{note}"));
        sent += parts.len();
        bytes += parts.iter().map(|part| part.file.size).sum::<u64>();
        tracing::info!("{sent} of {count} files, {} of {} MiB", mib(bytes), mib(total));
    }
    Ok(new)
}

/// Returns the query of a request. Without a reporter, the instances of each request are its own anyway.
fn query_of<'q>(query: &[(&'q str, String)], nr: usize) -> Vec<(&'q str, String)> {
    let mut query = query.to_vec();
    if nr > 1 && query.iter().any(|(name, _)| *name == "reporter") {
        let part = format!("part {nr}");
        match query.iter().position(|(name, _)| *name == "variant") {
            Some(index) => query[index].1 = format!("{}, {part}", query[index].1),
            None => query.push(("variant", part)),
        }
    }
    query
}

/// Adds the files of a request to its error. The answer has the number of a file, as Assay does not
/// receive paths.
fn named(error: ClientError, parts: &[Part]) -> anyhow::Error {
    let names = parts.iter().map(|part| part.file.path.display().to_string()).collect::<Vec<_>>();
    let list = match &names[..] {
        [one] => one.clone(),
        [first, .., last] => format!("{} files from {first} to {last}", names.len()),
        [] => String::new(),
    };
    anyhow::Error::from(error).context(list)
}

fn body(part: &Part) -> multipart::Part {
    let contents = Body::wrap_stream(contents(part.file.clone()));
    multipart::Part::stream_with_length(contents, part.file.size).file_name(part.name.clone())
}

/// Returns the contents of a file as a stream that logs its progress.
fn contents(
    file: File,
) -> impl futures::Stream<Item = std::io::Result<tokio_util::bytes::Bytes>> + Send + 'static {
    let (mut logged, mut sent) = (Instant::now(), 0);
    let name = file.path.display().to_string();
    let open = async move { tokio::fs::File::open(Path::new(&file.path)).await };
    let bytes = futures::stream::once(open).map_ok(ReaderStream::new).try_flatten();
    bytes.inspect_ok(move |chunk| {
        sent += chunk.len() as u64;
        if logged.elapsed() > PROGRESS {
            logged = Instant::now();
            tracing::info!("{name}: {} of {} MiB", mib(sent), mib(file.size));
        }
    })
}

/// Returns a size in MiB with one decimal place.
fn mib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::query_of;

    #[test]
    fn instances_of_further_requests_of_a_reporter_are_others() {
        let query = |names: &[(&'static str, &str)], nr| {
            let names: Vec<_> =
                names.iter().map(|(name, text)| (*name, (*text).to_owned())).collect();
            let query =
                query_of(&names, nr).into_iter().map(|(name, text)| format!("{name}={text}"));
            query.collect::<Vec<_>>().join("&")
        };
        assert_eq!(query(&[("reporter", "1")], 1), "reporter=1");
        assert_eq!(query(&[("reporter", "1")], 2), "reporter=1&variant=part 2");
        let linux = [("reporter", "1"), ("variant", "linux")];
        assert_eq!(query(&linux, 3), "reporter=1&variant=linux, part 3");
        assert_eq!(query(&[("partial", "true")], 2), "partial=true");
    }
}
