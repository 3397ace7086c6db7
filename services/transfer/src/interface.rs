//! Requests to the interface of Assay, with bounded memory.

use std::{
    io::{BufReader, Read},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use assay_client::{Account, Backoff, Client, ClientError, send};
use futures::TryStreamExt;
use reqwest::{Method, RequestBuilder, Response, header::LINK};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use tokio_util::io::{StreamReader, SyncIoBridge};

/// Timeout of a request. Assay may take minutes for a large one.
const TIMEOUT: Duration = Duration::from_mins(15);

/// Number of attempts to receive a whole response.
const ATTEMPTS: u32 = 5;

/// Number of times that a record is sent while Assay refuses it for a while.
const REFUSALS: u32 = 30;

/// Number of records in a page.
const PAGE: &str = "limit=1000";

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
    ) -> Result<Response> {
        let request = |client: &Client| build(client.request(method.clone(), path));
        let sent = self.0.send_reliably(request).await;
        sent.map_err(|error| anyhow::Error::from(error).context(format!("{method} {path}")))
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let mut last = anyhow!("no answer");
        for _ in 0..ATTEMPTS {
            match self.send(Method::GET, path, |request| request).await?.json().await {
                Ok(answer) => return Ok(answer),
                Err(error) => last = anyhow::Error::from(error).context(format!("GET {path}")),
            }
        }
        Err(last)
    }

    /// Creates a record, and returns it. A request is repeated only if Assay has refused it: one that
    /// was not answered may have created the record, which a repeated import finds.
    pub(crate) async fn create(&self, path: &str, body: &Value) -> Result<Map<String, Value>> {
        let mut backoff = Backoff::default();
        for _ in 1..REFUSALS {
            match send(self.0.request(Method::POST, path).json(body)).await {
                Ok(answer) => return answer.json().await.with_context(|| path.to_owned()),
                Err(error) if !error.is_permanent() && error.status().is_some() => {
                    backoff.wait().await;
                }
                Err(error) => {
                    return Err(anyhow::Error::from(error).context(format!("POST {path}")));
                }
            }
        }
        let answer = send(self.0.request(Method::POST, path).json(body)).await;
        answer
            .with_context(|| format!("POST {path}"))?
            .json()
            .await
            .with_context(|| path.to_owned())
    }

    /// Sends JSON, and ignores the answer.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<()> {
        self.send(Method::PUT, path, |request| request.json(body)).await?;
        Ok(())
    }

    /// Calls `each` with all records of a list, a page at a time.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let mut next = Some(format!("{path}?{PAGE}"));
        while let Some(page) = next {
            next = self.page(&page, &mut each).await?;
        }
        Ok(())
    }

    /// Calls `each` with the records of a page. Returns the path of the next one.
    pub(crate) async fn page<T: DeserializeOwned>(
        &self,
        path: &str,
        each: impl FnMut(T) -> Result<()>,
    ) -> Result<Option<String>> {
        let mut last = anyhow!("no answer");
        for _ in 0..ATTEMPTS {
            let answer = self.send(Method::GET, path, |request| request).await?;
            let next = link(&answer);
            match answer.json::<Vec<T>>().await {
                Ok(records) => {
                    records.into_iter().try_for_each(each)?;
                    return Ok(next);
                }
                Err(error) => last = anyhow::Error::from(error).context(format!("GET {path}")),
            }
        }
        Err(last)
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
        let mut last = anyhow!("no answer");
        for _ in 0..ATTEMPTS {
            let answer = self.send(Method::GET, path, |request| request).await?;
            match read_streamed(answer, field, begin()?, each).await {
                Ok(read) => return Ok(read),
                Err(error) => last = error.context(format!("GET {path}")),
            }
        }
        Err(last)
    }
}

/// Reads a response as [`Interface::get_streamed`] does.
pub(crate) async fn read_streamed<T, S>(
    answer: Response,
    field: &'static str,
    mut state: S,
    each: fn(&mut S, T) -> Result<()>,
) -> Result<(Map<String, Value>, S)>
where
    T: DeserializeOwned + Send + 'static,
    S: Send + 'static,
{
    let body = answer.bytes_stream().map_err(std::io::Error::other);
    let body = SyncIoBridge::new(StreamReader::new(Box::pin(body)));
    let parse = move || {
        let fields = parse(BufReader::new(body), field, &mut |element| each(&mut state, element))?;
        Ok((fields, state))
    };
    tokio::task::spawn_blocking(parse).await?
}

/// Returns the path of the next page.
fn link(answer: &Response) -> Option<String> {
    let link = answer.headers().get(LINK)?.to_str().ok()?;
    let target = link.split(',').find(|one| one.contains("rel=\"next\""))?;
    let target = target.split_once('<')?.1.split_once('>')?.0;
    Some(target.find("/api/").map_or(target, |start| &target[start..]).to_owned())
}

/// Returns whether Assay rejected a request with a code.
pub(crate) fn has_code(error: &anyhow::Error, code: &str) -> bool {
    error
        .chain()
        .any(|cause| cause.downcast_ref::<ClientError>().is_some_and(|error| error.has_code(code)))
}

/// Parses an object, and calls `each` with the elements of the array `field`.
fn parse<T: DeserializeOwned>(
    body: impl Read,
    field: &str,
    each: &mut dyn FnMut(T) -> Result<()>,
) -> Result<Map<String, Value>> {
    let mut failure = None;
    let object = Object { field, each, failure: &mut failure };
    let read = object.deserialize(&mut serde_json::Deserializer::from_reader(body));
    match failure {
        Some(failure) => Err(failure),
        None => Ok(read?),
    }
}

/// An object with a large array.
struct Object<'o, T> {
    field: &'o str,
    each: &'o mut dyn FnMut(T) -> Result<()>,
    failure: &'o mut Option<anyhow::Error>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Object<'_, T> {
    type Value = Map<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, body: D) -> Result<Self::Value, D::Error> {
        body.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<'_, T> {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = object.next_key::<String>()? {
            if name == self.field {
                let elements = Elements { each: &mut *self.each, failure: &mut *self.failure };
                object.next_value_seed(elements)?;
            } else {
                fields.insert(name, object.next_value()?);
            }
        }
        Ok(fields)
    }
}

/// The elements of the array.
struct Elements<'o, T> {
    each: &'o mut dyn FnMut(T) -> Result<()>,
    failure: &'o mut Option<anyhow::Error>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Elements<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, body: D) -> Result<(), D::Error> {
        body.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Elements<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            if let Err(failure) = (self.each)(element) {
                *self.failure = Some(failure);
                return Err(serde::de::Error::custom("the element was refused"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_elements_of_a_large_array_are_passed_on_one_by_one() {
        let body = br#"{"Id": "1", "TestReports": [1, 2, 3], "Result": null}"#;
        let mut sum = 0;
        let mut add = |number: i32| {
            sum += number;
            Ok(())
        };
        let fields = parse(&body[..], "TestReports", &mut add).unwrap();
        assert_eq!(Value::Object(fields), json!({"Id": "1", "Result": null}));
        assert_eq!(sum, 6);

        let mut refuse = |_: i32| Err(anyhow!("no space"));
        let refused = parse(&body[..], "TestReports", &mut refuse).unwrap_err();
        assert_eq!(refused.to_string(), "no space");
        let mut take = |_: i32| Ok(());
        assert!(parse(&body[..20], "TestReports", &mut take).is_err(), "broken off");
    }
}
