//! The page to return to after a login.

use http::{HeaderMap, Uri, header::REFERER};

use crate::api::address;

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

    /// Returns the page that has sent a request, if the browser names it.
    pub(super) fn referrer(headers: &HeaderMap) -> Self {
        let page = headers.get(REFERER).and_then(|page| page.to_str().ok()?.parse::<Uri>().ok());
        page.as_ref().map(Self::of).unwrap_or_default()
    }

    /// Returns the page above that of a request, with its query.
    pub(super) fn above(uri: &Uri) -> Self {
        let (above, _) = uri.path().rsplit_once('/').unwrap_or_default();
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        Self::parse(&format!("{above}{query}"))
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

    /// Returns the path of the login that leads to this page. It says that the session has ended to users who have
    /// sent a form.
    pub(super) fn login(&self, has_sent: bool) -> String {
        let next = (*self != Self::default()).then_some(("next", self.as_str()));
        let ended = has_sent.then_some(("ended", "yes"));
        address("/login", &next.into_iter().chain(ended).collect::<Vec<_>>())
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
        assert_eq!(next.login(false), "/login?next=%2Fexecutions%2F1%3Fchange%3DNew%26q%3Da");
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
        assert_eq!(Next::default().login(false), "/login");
    }

    #[test]
    fn a_form_leads_back_to_its_page_after_a_login() {
        let referrer = |page: &'static str| {
            let header = (REFERER, http::HeaderValue::from_static(page));
            Next::referrer(&HeaderMap::from_iter([header])).login(true)
        };
        let page = "http://acme.assay.test/executions/1?change=New";
        assert_eq!(referrer(page), "/login?next=%2Fexecutions%2F1%3Fchange%3DNew&ended=yes");
        assert_eq!(referrer("http://acme.assay.test/login?next=%2Fa"), "/login?ended=yes");
        assert_eq!(Next::referrer(&HeaderMap::new()), Next::default());
    }

    #[test]
    fn a_path_without_a_page_is_below_one() {
        for (path, expected) in [
            ("/account/tokens", "/account"),
            ("/cases/1/state?branch=main", "/cases/1?branch=main"),
            ("/logout", "/"),
            ("//evil.test/a", "/"),
        ] {
            assert_eq!(Next::above(&Uri::from_static(path)).as_str(), expected, "{path}");
        }
    }
}
