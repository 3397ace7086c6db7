//! The page to return to after a login.

use http::Uri;

/// The path and query of a page of this host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Next(String);

impl Default for Next {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

impl Next {
    /// Returns the page of a request.
    pub(super) fn of(uri: &Uri) -> Self {
        uri.path_and_query().map(|page| Self::parse(page.as_str())).unwrap_or_default()
    }

    /// Returns the page if it is certainly one of this host, otherwise the first one. Browsers read
    /// `//host` and `/\host` as other hosts, and ignore control characters between.
    pub(crate) fn parse(text: &str) -> Self {
        let is_path = text.starts_with('/') && !text.starts_with("//");
        let is_safe = |byte: u8| byte.is_ascii_graphic() && byte != b'\\';
        let is_session = text.starts_with("/login") || text.starts_with("/logout");
        let is_own = is_path && text.bytes().all(is_safe) && !is_session;
        if is_own { Self(text.to_owned()) } else { Self::default() }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the login that leads to this page.
    pub(super) fn login(&self) -> String {
        if *self == Self::default() {
            return "/login".to_owned();
        }
        let query = serde_urlencoded::to_string([("next", &self.0)]).unwrap_or_default();
        format!("/login?{query}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_this_host_are_kept() {
        for page in ["/", "/executions/1?view=all&q=%2F%2Fa", "/projects/a-b"] {
            assert_eq!(Next::parse(page).as_str(), page);
        }
        let next = Next::parse("/executions/1?change=New&q=a");
        assert_eq!(next.login(), "/login?next=%2Fexecutions%2F1%3Fchange%3DNew%26q%3Da");
    }

    #[test]
    fn other_hosts_and_the_login_itself_are_not() {
        for text in [
            "",
            "//evil.test",
            "/\\evil.test",
            "/\t/evil.test",
            "https://evil.test",
            "evil.test",
            "\\\\evil.test",
            "/a\\b",
            "javascript:alert(1)",
            "/login?next=/login",
            "/logout",
            " /",
            "/é",
        ] {
            assert_eq!(Next::parse(text), Next::default(), "{text:?}");
        }
        assert_eq!(Next::default().login(), "/login");
    }
}
