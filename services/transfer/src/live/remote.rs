//! Requests to the interface of another tool.

use std::{fmt, path::Path, time::Duration};

use anyhow::{Context, Result, anyhow, bail};
use assay_client::Backoff;
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderValue, REFERER},
};
use serde_json::Value;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Number of attempts, over about a minute and a half.
const ATTEMPTS: u32 = 15;

/// The interface of a tool, and the credentials for it.
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
        let http = Client::builder().timeout(TIMEOUT).default_headers(headers).build()?;
        Ok(Self { http, base: url.as_str().trim_end_matches('/').to_owned() })
    }

    /// Returns the URL of a path.
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Requests JSON.
    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        let request = || self.http.get(self.url(path));
        self.read(request, path, async |answer| answer.json().await).await
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
        self.read(request, path, async |answer| answer.json().await).await
    }

    /// Reads a file of limited size to a path. Returns whether it was read: a file may be missing or too
    /// large.
    pub(super) async fn download(&self, path: &str, limit: u64, target: &Path) -> Result<bool> {
        if target.exists() {
            return Ok(true);
        }
        let request = || self.http.get(self.url(path));
        let body = async |answer: Response| {
            if answer.content_length().is_some_and(|length| length > limit) {
                return Ok(None);
            }
            answer.bytes().await.map(Some)
        };
        let bytes = match self.read(request, path, body).await {
            Ok(bytes) => bytes,
            Err(error) if error.downcast_ref::<Missing>().is_some() => None,
            Err(error) => return Err(error),
        };
        let Some(bytes) = bytes.filter(|bytes| bytes.len() as u64 <= limit) else {
            return Ok(false);
        };
        super::write(target, &bytes)?;
        Ok(true)
    }

    /// Sends a request and reads the answer, again if the tool cannot be reached or is overloaded.
    async fn read<T>(
        &self,
        request: impl Fn() -> RequestBuilder,
        path: &str,
        body: impl AsyncFn(Response) -> reqwest::Result<T>,
    ) -> Result<T> {
        let mut backoff = Backoff::default();
        let mut last = anyhow!("no answer");
        for _ in 0..ATTEMPTS {
            let read = match request().send().await {
                Ok(answer) if answer.status().is_success() => body(answer).await,
                Ok(answer) if is_permanent(answer.status()) => return refused(path, answer).await,
                Ok(answer) => answer.error_for_status().map(|_| unreachable!("it has failed")),
                Err(error) => Err(error),
            };
            match read {
                Ok(read) => return Ok(read),
                Err(error) => last = anyhow::Error::from(error),
            }
            backoff.wait().await;
        }
        Err(last.context(self.url(path)))
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
    status.is_client_error() && !is_busy || status.is_redirection()
}

/// Fails with what the tool says and what to do.
async fn refused<T>(path: &str, answer: Response) -> Result<T> {
    let status = answer.status();
    let said = answer.text().await.unwrap_or_default();
    let said: String = said.chars().take(300).collect();
    match status {
        StatusCode::NOT_FOUND => Err(anyhow::Error::from(Missing).context(path.to_owned())),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => bail!(
            "{path}: {status}: {said}: check --source-token, and that its user is a member of \
             --source-project"
        ),
        _ => bail!("{path}: {status}: {said}"),
    }
}
