//! The baseline cut in two: HTTP and tokens in one process, PostgreSQL in another, and a gRPC call in
//! between. The response is rendered by the second process and only passed on by the first.
//!
//! It shows what the cut alone costs, and is the most that a gateway and a service can reach whose
//! requests are not gathered.

use std::{net::SocketAddr, time::Duration};

use anyhow::Result;
use axum::{
    Router,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
    routing::{get, post},
    serve::ListenerExt,
};
use futures::future::BoxFuture;
use http::{
    StatusCode, Uri,
    header::{CONTENT_TYPE, LINK},
    uri::PathAndQuery,
};
use sqlx::{PgPool, postgres::PgConnectOptions};
use tokio::net::TcpListener;
use tonic::{
    Request, Status, client, server,
    server::UnaryService,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;
use uuid::Uuid;

use super::{
    App, Page, pool, store,
    token::{Caller, Verifier},
};

/// Path of the only method.
const METHOD: &str = "/bench.Store/Read";

/// Options of the command that runs the process with PostgreSQL.
#[derive(clap::Args, Clone)]
pub(crate) struct Store {
    /// Address to listen on
    #[arg(long)]
    listen: SocketAddr,
    /// PostgreSQL connection URL
    #[arg(long)]
    database_url: PgConnectOptions,
}

/// Options of the command that runs the process with HTTP.
#[derive(clap::Args, Clone)]
pub(crate) struct Front {
    /// Address to listen on
    #[arg(long)]
    listen: SocketAddr,
    /// URL of the other process
    #[arg(long)]
    store: Uri,
}

/// A test case, or a page of them.
#[derive(Clone, PartialEq, prost::Message)]
struct Question {
    #[prost(bytes = "vec", tag = "1")]
    customer: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    project: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "3")]
    id: Option<Vec<u8>>,
    #[prost(int64, tag = "4")]
    limit: i64,
    #[prost(bytes = "vec", optional, tag = "5")]
    cursor: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Answer {
    /// The JSON of the response. Absent if the test case does not exist.
    #[prost(bytes = "bytes", optional, tag = "1")]
    json: Option<bytes::Bytes>,
    /// Header for the next page.
    #[prost(string, optional, tag = "2")]
    link: Option<String>,
}

impl Store {
    /// Serves calls until the process is killed.
    pub(crate) fn run(self) -> Result<()> {
        let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        tokio.block_on(async {
            let db = pool(self.database_url).await?;
            let read = async |State(db): State<PgPool>, call: axum::extract::Request| {
                let codec = ProstCodec::<Answer, Question>::default();
                server::Grpc::new(codec).unary(Reader(db), call).await
            };
            let routes = Router::new().route(METHOD, post(read)).with_state(db);
            serve(self.listen, routes).await
        })
    }
}

/// Serves requests without Nagle's algorithm, which would delay small messages of HTTP/2.
async fn serve(address: SocketAddr, routes: Router) -> Result<()> {
    let listener = TcpListener::bind(address).await?.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, routes).await?)
}

struct Reader(PgPool);

impl UnaryService<Question> for Reader {
    type Response = Answer;
    type Future = BoxFuture<'static, Result<tonic::Response<Answer>, Status>>;

    fn call(&mut self, question: Request<Question>) -> Self::Future {
        let db = self.0.clone();
        Box::pin(async move {
            let answer = answer(&db, question.into_inner()).await;
            answer.map(tonic::Response::new).map_err(|error| Status::internal(error.to_string()))
        })
    }
}

async fn answer(db: &PgPool, question: Question) -> Result<Answer> {
    let customer = Uuid::from_slice(&question.customer)?;
    let project = Uuid::from_slice(&question.project)?;
    if let Some(id) = question.id {
        let case = store::get(db, customer, project, Uuid::from_slice(&id)?).await?;
        let json = case.map(|case| serde_json::to_vec(&case)).transpose()?;
        return Ok(Answer { json: json.map(Into::into), link: None });
    }
    let cursor = question.cursor.map(|cursor| Uuid::from_slice(&cursor)).transpose()?;
    let page = Page { limit: Some(question.limit), cursor };
    let (entries, link) = super::page(db, customer, project, &page).await?;
    Ok(Answer { json: Some(serde_json::to_vec(&entries)?.into()), link })
}

impl Front {
    /// Serves requests until the process is killed.
    pub(crate) fn run(self) -> Result<()> {
        let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        tokio.block_on(async {
            let endpoint = Endpoint::from(self.store).connect_timeout(Duration::from_secs(5));
            let app = App { db: endpoint.connect_lazy(), verifier: Verifier::new() };
            let routes = Router::new()
                .route("/api/projects/{project}/testcases", get(list))
                .route("/api/projects/{project}/testcases/{id}", get(read))
                .with_state(app);
            serve(self.listen, routes).await
        })
    }
}

async fn read(
    State(app): State<App<Channel>>,
    caller: Caller,
    Path((project, id)): Path<(Uuid, Uuid)>,
) -> Response {
    let id = Some(id.as_bytes().to_vec());
    ask(app.db, Question { id, ..question(&caller, project) }).await
}

async fn list(
    State(app): State<App<Channel>>,
    caller: Caller,
    Path(project): Path<Uuid>,
    Query(page): Query<Page>,
) -> Response {
    let cursor = page.cursor.map(|cursor| cursor.as_bytes().to_vec());
    let limit = page.limit.unwrap_or(i64::MAX);
    ask(app.db, Question { limit, cursor, ..question(&caller, project) }).await
}

fn question(caller: &Caller, project: Uuid) -> Question {
    Question {
        customer: caller.customer.as_bytes().to_vec(),
        project: project.as_bytes().to_vec(),
        ..Question::default()
    }
}

async fn ask(channel: Channel, question: Question) -> Response {
    let mut store = client::Grpc::new(channel);
    let codec = ProstCodec::<Question, Answer>::default();
    let answered = async {
        store.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        store.unary(Request::new(question), PathAndQuery::from_static(METHOD), codec).await
    };
    match answered.await.map(tonic::Response::into_inner) {
        Ok(Answer { json: Some(json), link }) => {
            let mut response = ([(CONTENT_TYPE, "application/json")], json).into_response();
            if let Some(link) = link.and_then(|link| link.parse().ok()) {
                response.headers_mut().insert(LINK, link);
            }
            response
        }
        Ok(Answer { json: None, .. }) => StatusCode::NOT_FOUND.into_response(),
        Err(status) => {
            eprintln!("line: {status}");
            StatusCode::BAD_GATEWAY.into_response()
        }
    }
}
