//! A client of the HTTP interface, whose assertions show the response.

use reqwest::{Client, Method, RequestBuilder, StatusCode, header::HeaderMap};
use serde_json::Value;

/// A client of `/api` at one address, with the token of one user.
#[derive(Clone)]
pub struct Api {
    base: String,
    token: Option<String>,
    client: Client,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    /// Method and URL, for messages.
    request: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Api {
    /// Creates a client without a token for a base URL such as `http://127.0.0.1:8080`.
    pub fn new(base: impl Into<String>) -> Self {
        assay_runtime::install_crypto();
        Self { base: base.into(), token: None, client: Client::new() }
    }

    /// Returns this client with a token.
    #[must_use]
    pub fn with_token(&self, token: impl Into<String>) -> Self {
        Self { token: Some(token.into()), ..self.clone() }
    }

    /// Returns this client with the token of another one.
    #[must_use]
    pub fn with_token_of(&self, other: &Self) -> Self {
        Self { token: other.token.clone(), ..self.clone() }
    }

    /// Returns the token.
    ///
    /// # Panics
    ///
    /// If the client has no token.
    pub fn token(&self) -> &str {
        self.token.as_deref().expect("a client with a token")
    }

    /// Returns a request, to which the caller can add headers and a body.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.header("Authentication", format!("Bearer {token}")),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        Answer::of(self.request(Method::PUT, path).json(&body)).await
    }
}

impl Answer {
    /// Sends the request and reads the whole response.
    pub async fn of(request: RequestBuilder) -> Self {
        let (client, request) = request.build_split();
        let request = request.expect("a request");
        let name = format!("{} {}", request.method(), request.url());
        let response = client.execute(request).await.unwrap_or_else(|e| panic!("{name}: {e:?}"));
        Self {
            status: response.status(),
            headers: response.headers().clone(),
            body: response.bytes().await.unwrap_or_else(|e| panic!("{name}: {e:?}")).to_vec(),
            request: name,
        }
    }

    /// Returns the JSON body.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{self}\nis not JSON: {e}"))
    }

    /// Panics if the status is another one.
    #[track_caller]
    pub fn expect(&self, status: u16) -> &Self {
        assert_eq!(self.status.as_u16(), status, "{self}");
        self
    }

    /// Returns the body of a response with status 200.
    #[track_caller]
    pub fn ok(&self) -> Value {
        self.expect(200).json()
    }

    /// Returns the body of a response with status 201.
    #[track_caller]
    pub fn created(&self) -> Value {
        self.expect(201).json()
    }

    /// Returns the body of a problem with this status and code.
    #[track_caller]
    pub fn is_problem(&self, status: u16, code: &str) -> Value {
        let problem = self.expect(status).json();
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self}");
        assert_eq!(problem["code"], code, "{self}");
        problem
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body = String::from_utf8_lossy(&self.body);
        write!(f, "{}\n{}\n{:#?}\n{body:.4000}", self.request, self.status, self.headers)
    }
}
