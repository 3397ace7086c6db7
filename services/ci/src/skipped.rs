//! The tests that are skipped in Assay, in the form of a runner.

mod format;

use anyhow::{Context, bail};
use assay_client::{Client, Foreign, Pages, parse_json, segment, visible};
use reqwest::{Method, header::LINK};
use serde::{Deserialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::Format;

/// Maximum size of a list, in bytes: of all its pages together.
const LARGEST: u64 = 64 << 20;

/// A test that is left out.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Skipped {
    test_case_identifier: Foreign,
    test_case_name: Foreign,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Project {
    id: String,
    name: Foreign,
}

/// Prints the tests of a project that are skipped. Prints nothing if there are none, or no such project yet.
pub(crate) async fn print(client: &Client, project: &str, format: Format) -> anyhow::Result<()> {
    let Some(id) = project_id(client, project).await? else {
        tracing::warn!("the project {} does not exist yet", visible(project));
        return Ok(());
    };
    let list = format!("/api/projects/{}/testcasestates", segment(&id));
    let skipped: Vec<Skipped> = read(client, &list, "state=Skipped&limit=1000").await?;
    // A name with other characters could be a command of the CI system, several lines, or several tests.
    let (tests, hostile): (Vec<_>, Vec<_>) = skipped.into_iter().partition(|test| {
        let texts = [test.test_case_identifier.raw(), test.test_case_name.raw()];
        texts.iter().all(|text| visible(text) == **text) && format::is_one(format, texts[0])
    });
    for test in hostile {
        let name = visible(test.test_case_identifier.raw());
        tracing::warn!("{name} is not left out: the runner would not take its name for one test");
    }
    tracing::info!("{} tests are skipped", tests.len());
    let tests: Vec<_> = tests
        .iter()
        .map(|test| (test.test_case_identifier.raw(), test.test_case_name.raw()))
        .collect();
    for line in format::lines(format, &tests) {
        println!("{line}");
    }
    Ok(())
}

/// Returns the id of a project by its name or id.
async fn project_id(client: &Client, project: &str) -> anyhow::Result<Option<String>> {
    if Uuid::parse_str(project).is_ok() {
        return Ok(Some(project.to_owned()));
    }
    let query = format!("q={}&limit=1000", segment(project));
    let found: Vec<Project> = read(client, "/api/projects", &query).await?;
    let mut named = found.into_iter().filter(|one| one.name.raw() == project);
    let first = named.next();
    if named.next().is_some() {
        bail!("several projects have this name; state the id of one in --project");
    }
    Ok(first.map(|project| project.id))
}

/// Reads all records of a list.
async fn read<T: DeserializeOwned>(
    client: &Client,
    path: &str,
    query: &str,
) -> anyhow::Result<Vec<T>> {
    let (mut pages, mut records, mut rest) = (Pages::of(path, query), Vec::new(), LARGEST);
    while let Some(path) = pages.next() {
        let request = |client: &Client| client.request(Method::GET, &path);
        let answer = client.send_reliably(request).await?;
        let link = answer.header(LINK).map(str::to_owned);
        let page = answer.bytes(rest).await?;
        rest -= page.len() as u64;
        let page: Vec<T> =
            parse_json(&page).context("Assay did not answer with a list; check ASSAY_URL")?;
        records.extend(page);
        pages.turn(link.as_deref())?;
    }
    Ok(records)
}
