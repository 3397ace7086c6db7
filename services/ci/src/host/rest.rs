//! Requests to the REST interface of a host.

use std::time::Duration;

use anyhow::Context;
use assay_client::{Answer, harmless, redirect_target};
use reqwest::{
    Method, StatusCode,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
    redirect::Policy,
};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of an answer, in bytes. A page has 100 comments of at most a megabyte.
const LARGEST: u64 = 128 << 20;

/// Maximum size of an answer that refuses a request, in bytes.
const LARGEST_PROBLEM: u64 = 64 << 10;

/// Maximum length of a message of the host, in characters.
const LONGEST: usize = 500;

/// The version of GitHub's interface.
const GITHUB_VERSION: &str = "2022-11-28";

/// Tokens that the hosts need, for errors.
const GITHUB_TOKEN: &str = "the job needs `permissions: {pull-requests: write, statuses: write}`, which jobs of \
    pull requests from forks do not get";
const GITLAB_TOKEN: &str = "the token has to be an access token of the project with the scope `api` and the role \
    Developer";

/// The REST interface of a host, with a token that is sent to its origin only.
pub(super) struct Rest {
    http: reqwest::Client,
    base: String,
    /// Remedy if the token does not suffice.
    remedy: &'static str,
}

impl Rest {
    pub(super) fn github(base: &str, token: &SecretString) -> anyhow::Result<Self> {
        let more = [
            (ACCEPT, "application/vnd.github+json"),
            (HeaderName::from_static("x-github-api-version"), GITHUB_VERSION),
        ];
        let token = SecretString::from(format!("Bearer {}", token.expose_secret()));
        Self::new((base, GITHUB_TOKEN), (AUTHORIZATION, &token), &more)
    }

    pub(super) fn gitlab(base: &str, token: &SecretString) -> anyhow::Result<Self> {
        let more = [(ACCEPT, "application/json")];
        let name = HeaderName::from_static("private-token");
        Self::new((base, GITLAB_TOKEN), (name, token), &more)
    }

    fn new(
        (base, remedy): (&str, &'static str),
        (name, token): (HeaderName, &SecretString),
        more: &[(HeaderName, &'static str)],
    ) -> anyhow::Result<Self> {
        let mut token = HeaderValue::from_str(token.expose_secret())
            .context("the token for comments is not a text without line breaks")?;
        token.set_sensitive(true);
        let mut headers =
            HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_static("assay-ci"))]);
        for (name, value) in more {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(name, token);
        let builder = reqwest::Client::builder().default_headers(headers).redirect(Policy::none());
        // Only HTTPS needs the certificates of authorities.
        let is_plain = base.starts_with("http://");
        let builder = if is_plain { builder.tls_certs_only([]) } else { builder };
        let http = builder.timeout(TIMEOUT).build().context(crate::NO_CERTIFICATES)?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), remedy })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.send(Method::GET, path, None).await
    }

    /// Sends a record with a method, and returns the one in the answer.
    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<T> {
        let what = format!("{method} {}{path}", self.base);
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.with_context(|| what.clone())?;
        if let Some(to) = redirect_target(&response) {
            anyhow::bail!("{what}: redirects to {to}, and redirects are not followed");
        }
        let status = response.status();
        let answer = Answer::new(response);
        if status.is_success() {
            return answer.json(LARGEST).await.context(what);
        }
        let problem: Value = answer.json(LARGEST_PROBLEM).await.unwrap_or_default();
        let message = problem.get("message").or(problem.get("error"));
        let message = message.map(Value::to_string).unwrap_or_default();
        let message = harmless(&message, LONGEST);
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                anyhow::bail!("{what}: {status} {message}: {}", self.remedy)
            }
            _ => anyhow::bail!("{what}: {status} {message}"),
        }
    }
}
