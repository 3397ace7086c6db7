//! Requests to the interface of Assay, with bounded memory.

mod streamed;

use std::time::Duration;

use anyhow::{Result, anyhow};
use assay_client::{Account, Answer, Backoff, Client, ClientError, Pages, send};
use reqwest::{Method, RequestBuilder, StatusCode, header::LINK};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use self::streamed::read_streamed;

/// Timeout of a request. Assay may take minutes for a large one.
const TIMEOUT: Duration = Duration::from_mins(15);

/// Number of attempts to receive a whole response.
const ATTEMPTS: u32 = 5;

/// Number of times that a record is sent while Assay refuses it for a while.
const REFUSALS: u32 = 30;

/// Number of records in a page.
const PAGE: &str = "limit=1000";

/// Maximum size of a record, or of a page of them, in bytes.
const LARGEST: u64 = 64 << 20;

/// The interface, and the token of a caller.
#[derive(Clone)]
pub(crate) struct Interface(Client);

impl Interface {
    pub(crate) fn new(account: &Account) -> Result<Self> {
        Ok(Self(Client::new(account, TIMEOUT)?))
    }

    /// Sends a request until Assay answers it.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        build: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer> {
        let request = |client: &Client| Ok(build(client.request(method.clone(), path)?));
        let sent = self.0.send_reliably(request).await;
        sent.map_err(|error| anyhow::Error::from(error).context(format!("{method} {path}")))
    }

    /// Sends a request once.
    pub(crate) async fn send_once(
        &self,
        method: Method,
        path: &str,
        build: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Answer, ClientError> {
        send(build(self.0.request(method, path)?)).await
    }

    /// Sends a request and reads the answer, again if it breaks off.
    pub(crate) async fn receive<T>(
        &self,
        path: &str,
        read: impl AsyncFn(Answer) -> Result<T>,
    ) -> Result<T> {
        let mut last = anyhow!("no answer");
        for _ in 0..ATTEMPTS {
            match read(self.send(Method::GET, path, |request| request).await?).await {
                Ok(read) => return Ok(read),
                Err(error) => last = error.context(format!("GET {path}")),
            }
            if is_permanent(&last) {
                break;
            }
        }
        Err(last)
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.receive(path, async |answer| Ok(answer.json(LARGEST).await?)).await
    }

    /// Creates a record, and returns it. A request is repeated only if Assay has refused it: one that
    /// was not answered may have created the record, which a repeated import finds.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> Result<Map<String, Value>> {
        let in_path =
            |error: ClientError| anyhow::Error::from(error).context(format!("POST {path}"));
        let (mut backoff, mut refusals) = (Backoff::default(), 0);
        loop {
            let request = self.0.request(Method::POST, path).map_err(in_path)?;
            match send(request.json(body)).await {
                Ok(answer) => return answer.json(LARGEST).await.map_err(in_path),
                Err(error)
                    if !error.is_permanent() && error.status().is_some() && refusals < REFUSALS =>
                {
                    refusals += 1;
                    backoff.wait().await;
                }
                Err(error) => return Err(in_path(error)),
            }
        }
    }

    /// Sends JSON, and ignores the answer.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<()> {
        self.send(Method::PUT, path, |request| request.json(body)).await?;
        Ok(())
    }

    /// Requests the contents of a file from a position on, once.
    pub(crate) async fn download(
        &self,
        path: &str,
        sha256: &str,
        from: u64,
    ) -> Result<Answer, ClientError> {
        self.0.download(path, sha256, from).await
    }

    /// Calls `each` with all records of a list, a page at a time.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let mut pages = Pages::of(path, PAGE);
        while let Some(records) = self.page(&mut pages).await? {
            records.into_iter().try_for_each(&mut each)?;
        }
        Ok(())
    }

    /// Returns the records of the next page. `None` after the last one.
    pub(crate) async fn page<T: DeserializeOwned>(
        &self,
        pages: &mut Pages,
    ) -> Result<Option<Vec<T>>> {
        let Some(path) = pages.next() else { return Ok(None) };
        let read = async |answer: Answer| {
            let link = answer.header(LINK).map(str::to_owned);
            Ok((link, answer.json::<Vec<T>>(LARGEST).await?))
        };
        let (link, records) = self.receive(&path, read).await?;
        pages.turn(link.as_deref())?;
        Ok(Some(records))
    }

    /// Reads a record whose array `field` may be large: calls `each` with its elements as they are
    /// received. Returns the other fields and the state. If the response breaks off, it is requested
    /// again, with a new state.
    pub(crate) async fn get_streamed<T, S>(
        &self,
        path: &str,
        field: &'static str,
        begin: impl Fn() -> Result<S>,
        each: fn(&mut S, T) -> Result<()>,
    ) -> Result<(Map<String, Value>, S)>
    where
        T: DeserializeOwned + Send + 'static,
        S: Send + 'static,
    {
        self.receive(path, async |answer| read_streamed(answer, field, begin()?, each).await).await
    }
}

/// Returns whether a repeated request would fail in the same way.
fn is_permanent(error: &anyhow::Error) -> bool {
    is_of(error, ClientError::is_permanent)
}

/// Returns whether Assay rejected a request with a code.
pub(crate) fn has_code(error: &anyhow::Error, code: &str) -> bool {
    is_of(error, |error| error.has_code(code))
}

/// Returns whether Assay answered that the record of a request does not exist.
pub(crate) fn is_missing(error: &anyhow::Error) -> bool {
    is_of(error, |error| error.status() == Some(StatusCode::NOT_FOUND))
}

fn is_of(error: &anyhow::Error, kind: impl Fn(&ClientError) -> bool) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<ClientError>().is_some_and(&kind))
}
