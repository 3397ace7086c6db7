//! The method of a request, with its ids and parameters, which are in the query.

use http::{StatusCode, Uri};
use url::form_urlencoded;

use crate::problem::{Problem, testrail::UNKNOWN_METHOD};

/// The prefix of methods.
const PREFIX: &str = "/api/v2/";

/// A call of a method, such as `get_cases/1&suite_id=2&offset=250`.
#[derive(Debug)]
pub(super) struct Call {
    path: Vec<String>,
    parameters: Vec<(String, String)>,
}

impl Call {
    pub(super) fn of(uri: &Uri) -> Result<Self, Problem> {
        let query = uri.query().unwrap_or_default();
        let call = query.strip_prefix(PREFIX).or_else(|| query.strip_prefix("api/v2/"));
        let call = call.ok_or_else(|| unknown(query))?;
        let (path, parameters) = call.split_once(['&', '?']).unwrap_or((call, ""));
        let path = path.split('/').filter(|part| !part.is_empty()).map(str::to_owned);
        let parameters = form_urlencoded::parse(parameters.as_bytes()).into_owned();
        Ok(Self { path: path.collect(), parameters: parameters.collect() })
    }

    /// Returns the name of the method.
    pub(super) fn method(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }

    /// Returns the ids in the path.
    pub(super) fn ids(&self) -> Result<Vec<i64>, Problem> {
        let id = |part: &String| {
            let id = part.parse().ok().filter(|id| *id > 0);
            id.ok_or_else(|| Problem::malformed(format!("{part:?} is not a valid ID")))
        };
        self.path.iter().skip(1).map(id).collect()
    }

    /// Returns a parameter.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.parameters.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the link to the same method with other parameters for pages.
    pub(super) fn link(&self, paging: &[(&str, String)]) -> String {
        let is_kept = |name: &str| !matches!(name, "offset" | "limit" | "cursor");
        let kept = self.parameters.iter().filter(|(name, _)| is_kept(name));
        let mut parameters = form_urlencoded::Serializer::new(String::new());
        parameters.extend_pairs(kept).extend_pairs(paging);
        format!("{PREFIX}{}&{}", self.path.join("/"), parameters.finish())
    }

    /// Returns the problem of a method that is not supported.
    pub(super) fn unknown(&self) -> Problem {
        unknown(self.method())
    }
}

fn unknown(method: &str) -> Problem {
    let detail = format!("Unknown method '{method}'");
    Problem::new(StatusCode::NOT_FOUND, UNKNOWN_METHOD, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(query: &str) -> Call {
        Call::of(&format!("/index.php?{query}").parse().unwrap()).unwrap()
    }

    #[test]
    fn the_query_is_the_path() {
        for query in [
            "/api/v2/get_cases/1&suite_id=2",
            "/api/v2/get_cases/1/&suite_id=2",
            "api/v2/get_cases/1?suite_id=2",
        ] {
            let call = call(query);
            assert_eq!((call.method(), call.ids().unwrap()), ("get_cases", vec![1]), "{query}");
            assert_eq!(call.parameter("suite_id"), Some("2"), "{query}");
        }
        assert_eq!(call("/api/v2/get_projects").ids().unwrap(), Vec::<i64>::new());
        call("/api/v2/get_cases/x").ids().unwrap_err();
        Call::of(&"/index.php?/auth/login".parse().unwrap()).unwrap_err();
    }

    #[test]
    fn links_keep_other_parameters() {
        let call = call("/api/v2/get_cases/1&suite_id=2&offset=250&limit=250");
        let next = call.link(&[("limit", "250".to_owned()), ("offset", "500".to_owned())]);
        assert_eq!(next, "/api/v2/get_cases/1&suite_id=2&limit=250&offset=500");
    }
}
