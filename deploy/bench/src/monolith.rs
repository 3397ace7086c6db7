//! The baseline: one process with axum and sqlx, as a team would write it that needs nothing else.
//!
//! It answers the measured requests for test cases with the JSON of Assay, from a database with the
//! same columns. Creations and updates write an outbox row in the same statement. It does without
//! all that Assay has in addition: other services, events, telemetry, limits, permissions.

pub(crate) mod floor;
pub(crate) mod line;
mod store;
mod token;

use std::net::SocketAddr;

use anyhow::Result;
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
    routing::get,
};
use futures::{StreamExt, stream};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_TYPE, LINK, LOCATION},
};
use serde::Deserialize;
use sqlx::{
    ConnectOptions, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::{net::TcpListener, sync::mpsc};
use uuid::Uuid;

use self::{
    store::{Changes, NewTestCase, TestCase, TestCaseEntry},
    token::{Caller, Verifier},
};

/// The tables.
pub(crate) const SCHEMA: &str = include_str!("monolith/schema.sql");

/// Number of database connections, that of a service of Assay.
const CONNECTIONS: u32 = 8;

/// Number of bytes of a list that are sent at once.
const CHUNK: usize = 64 << 10;

/// Number of chunks that wait for a slow client.
const CHUNKS: usize = 4;

/// Options of the command that runs the baseline.
#[derive(clap::Args, Clone)]
pub(crate) struct Monolith {
    /// Address to listen on
    #[arg(long)]
    listen: SocketAddr,
    /// PostgreSQL connection URL
    #[arg(long)]
    database_url: PgConnectOptions,
}

/// The state of a server: its source of test cases, and the tokens that it knows.
#[derive(Clone)]
struct App<D = PgPool> {
    db: D,
    verifier: Verifier,
}

/// Issues a token that the baseline accepts.
pub(crate) fn token_for(customer: Uuid) -> Result<String> {
    token::issue(customer)
}

impl Monolith {
    /// Serves requests until the process is killed.
    pub(crate) fn run(self) -> Result<()> {
        let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        tokio.block_on(async {
            let db = pool(self.database_url).await?;
            let app = App { db, verifier: Verifier::new() };
            let routes = Router::new()
                .route("/api/projects/{project}/testcases", get(list).post(create))
                .route("/api/projects/{project}/testcases/{id}", get(read).put(update))
                .with_state(app);
            let listener = TcpListener::bind(self.listen).await?;
            Ok(axum::serve(listener, routes).await?)
        })
    }
}

async fn pool(options: PgConnectOptions) -> Result<PgPool, sqlx::Error> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false);
    pool.connect_with(options.disable_statement_logging()).await
}

/// A failure as a response.
struct Failure(StatusCode);

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        eprintln!("monolith: {error}");
        Self(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

const NOT_FOUND: Failure = Failure(StatusCode::NOT_FOUND);

async fn read(
    State(app): State<App>,
    caller: Caller,
    Path((project, id)): Path<(Uuid, Uuid)>,
) -> Result<Json<TestCase>, Failure> {
    store::get(&app.db, caller.customer, project, id).await?.map(Json).ok_or(NOT_FOUND)
}

async fn create(
    State(app): State<App>,
    caller: Caller,
    Path(project): Path<Uuid>,
    Json(case): Json<NewTestCase>,
) -> Result<Response, Failure> {
    let created = store::create(&app.db, caller.customer, project, &case).await?;
    let case = created.ok_or(NOT_FOUND)?;
    Ok((StatusCode::CREATED, [(LOCATION, case.path())], Json(case)).into_response())
}

async fn update(
    State(app): State<App>,
    caller: Caller,
    Path((project, id)): Path<(Uuid, Uuid)>,
    Json(changes): Json<Changes>,
) -> Result<Json<TestCase>, Failure> {
    let updated = store::update(&app.db, caller.customer, project, id, &changes).await?;
    updated.map(Json).ok_or(NOT_FOUND)
}

#[derive(Deserialize)]
struct Page {
    limit: Option<i64>,
    cursor: Option<Uuid>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(project): Path<Uuid>,
    Query(page): Query<Page>,
) -> Result<Response, Failure> {
    if page.limit.is_none() {
        return Ok(whole_list(app.db, caller.customer, project));
    }
    let (entries, link) = self::page(&app.db, caller.customer, project, &page).await?;
    let mut headers = HeaderMap::new();
    headers.extend(link.and_then(|link| HeaderValue::try_from(link).ok()).map(|link| (LINK, link)));
    Ok((headers, Json(entries)).into_response())
}

/// Returns a page, and the header for the next one.
async fn page(
    db: &PgPool,
    customer: Uuid,
    project: Uuid,
    page: &Page,
) -> Result<(Vec<TestCaseEntry>, Option<String>), sqlx::Error> {
    let before = page.cursor.unwrap_or(Uuid::max());
    let limit = page.limit.unwrap_or(i64::MAX).clamp(1, 1000);
    let mut entries = store::list(db, customer, project, before, limit + 1).await?;
    let mut link = None;
    if i64::try_from(entries.len()).is_ok_and(|count| count > limit) {
        entries.pop();
        link = entries.last().map(|last| {
            let id = last.id;
            format!("</api/projects/{project}/testcases?limit={limit}&cursor={id}>; rel=\"next\"")
        });
    }
    Ok((entries, link))
}

/// Streams all test cases of a project as they arrive from the database.
#[expect(clippy::disallowed_methods, reason = "the task ends with its response")]
fn whole_list(db: PgPool, customer: Uuid, project: Uuid) -> Response {
    let (chunks, receiver) = mpsc::channel(CHUNKS);
    tokio::spawn(async move {
        let entries = sqlx::query_as::<_, TestCaseEntry>(store::LIST)
            .bind(customer)
            .bind(project)
            .bind(Uuid::max())
            .bind(i64::MAX);
        let mut entries = entries.fetch(&db);
        let mut chunk = b"[".to_vec();
        let mut separator = "";
        while let Some(entry) = entries.next().await {
            chunk.extend_from_slice(separator.as_bytes());
            separator = ",";
            serde_json::to_writer(&mut chunk, &entry?)?;
            if chunk.len() >= CHUNK {
                let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK + 1024));
                chunks.send(Bytes::from(full)).await?;
            }
        }
        chunk.push(b']');
        chunks.send(Bytes::from(chunk)).await?;
        anyhow::Ok(())
    });
    let chunks = stream::unfold(receiver, async |mut receiver| {
        receiver.recv().await.map(|chunk| (Ok::<_, anyhow::Error>(chunk), receiver))
    });
    ([(CONTENT_TYPE, "application/json")], Body::from_stream(chunks)).into_response()
}
