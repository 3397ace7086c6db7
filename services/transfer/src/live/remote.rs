//! Requests to the interface of another tool.

use std::{fmt, path::Path, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use assay_client::{Answer, Backoff, ClientError, redirect_target, visible};
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue, REFERER},
    redirect::Policy,
};
use serde_json::Value;
use tokio::time::Instant;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Timeout for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Number of attempts, over about a minute and a half.
const ATTEMPTS: u32 = 15;

/// Time after which a request is not sent again, if its attempts take long.
const PATIENCE: Duration = Duration::from_mins(15);

/// Maximum size of an answer in JSON, and of one with an error, in bytes.
const LARGEST: u64 = 64 << 20;
const LARGEST_ERROR: u64 = 64 << 10;

/// The interface of a tool, and the credentials for it, which are sent to its origin only.
pub(super) struct Remote {
    http: Client,
    base: String,
}

impl Remote {
    /// Creates a client that sends a token, if there is one.
    pub(super) fn new(url: &Url, token: Option<&str>) -> Result<Self> {
        let mut headers = HeaderMap::new();
        // Kiwi TCMS requires it.
        headers.insert(REFERER, HeaderValue::from_str(url.as_str())?);
        if let Some(token) = token {
            let mut token = HeaderValue::from_str(&format!("Bearer {token}"))
                .context("--source-token: must be a text without line breaks")?;
            token.set_sensitive(true);
            headers.insert(AUTHORIZATION, token);
        }
        let http = Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(Policy::none())
            .default_headers(headers)
            .build()?;
        Ok(Self { http, base: url.as_str().trim_end_matches('/').to_owned() })
    }

    /// Returns the URL of a path.
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Requests JSON.
    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let request = || self.http.get(self.url(path));
        self.read(request, path, async |answer| answer.json(LARGEST).await).await
    }

    /// Sends JSON, with a cookie if there is one, and returns the JSON of the answer.
    pub(super) async fn post(
        &self,
        path: &str,
        cookie: Option<&str>,
        body: &Value,
    ) -> Result<Value> {
        let request = || {
            let request = self.http.post(self.url(path)).json(body);
            match cookie {
                Some(cookie) => request.header(reqwest::header::COOKIE, cookie),
                None => request,
            }
        };
        self.read(request, path, async |answer| answer.json(LARGEST).await).await
    }

    /// Reads a file of limited size to a path. Returns whether it was read: a file may be missing or too
    /// large.
    pub(super) async fn download(&self, path: &str, limit: u64, target: &Path) -> Result<bool> {
        if target.exists() {
            return Ok(true);
        }
        let request = || self.http.get(self.url(path));
        let body = async |answer: Answer| match answer.bytes(limit).await {
            Err(ClientError::TooLarge { .. }) => Ok(None),
            read => read.map(Some),
        };
        let bytes = match self.read(request, path, body).await {
            Ok(bytes) => bytes,
            Err(error) if error.downcast_ref::<Missing>().is_some() => None,
            Err(error) => return Err(error),
        };
        let Some(bytes) = bytes else { return Ok(false) };
        super::write(target, &bytes)?;
        Ok(true)
    }

    /// Sends a request and reads the answer, again if the tool cannot be reached or is overloaded.
    async fn read<T>(
        &self,
        request: impl Fn() -> RequestBuilder,
        path: &str,
        body: impl AsyncFn(Answer) -> Result<T, ClientError>,
    ) -> Result<T> {
        let (mut backoff, begun) = (Backoff::default(), Instant::now());
        let mut last = anyhow!("no answer");
        for _ in 0..ATTEMPTS {
            let read = match request().send().await {
                Ok(answer) if answer.status().is_success() => body(Answer::new(answer)).await,
                Ok(answer) if is_permanent(answer.status()) => return refused(path, answer).await,
                Ok(answer) => {
                    last = anyhow!("{}", answer.status());
                    backoff.wait().await;
                    continue;
                }
                Err(error) => Err(error.into()),
            };
            let error = match read {
                Ok(read) => return Ok(read),
                Err(error) => error,
            };
            let is_over = error.is_permanent() || begun.elapsed() > PATIENCE;
            last = error.into();
            if is_over {
                break;
            }
            backoff.wait().await;
        }
        Err(last.context(path.to_owned()))
    }
}

/// The failure of a request for something that does not exist.
#[derive(Debug, PartialEq)]
struct Missing;

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("404 Not Found: check --from and --source-project")
    }
}

impl std::error::Error for Missing {}

fn is_permanent(status: StatusCode) -> bool {
    let is_busy = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
    !status.is_server_error() && !is_busy
}

/// Fails with what the tool says and what to do.
async fn refused<T>(path: &str, answer: Response) -> Result<T> {
    let status = answer.status();
    if let Some(to) = redirect_target(&answer) {
        bail!(
            "{path}: the tool redirects to {}, and redirects are not followed; if it belongs to the \
             tool, set --from to it",
            visible(&to)
        );
    }
    let said = Answer::new(answer).bytes(LARGEST_ERROR).await.unwrap_or_default();
    let said: String = String::from_utf8_lossy(&said).chars().take(300).collect();
    match status {
        StatusCode::NOT_FOUND => Err(anyhow::Error::from(Missing).context(path.to_owned())),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => bail!(
            "{path}: {status}: {said}: check --source-token, and that its user is a member of \
             --source-project"
        ),
        _ => bail!("{path}: {status}: {said}"),
    }
}
