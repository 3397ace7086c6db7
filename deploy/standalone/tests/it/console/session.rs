//! Logins, logouts and requests that other pages send.

use assay_testkit::Answer;
use reqwest::Method;

use super::{Reader, filled};
use crate::{customer::Customer, people::password_of};

/// Paths to which pages send forms.
const FORMS: [&str; 11] = [
    "/login",
    "/logout",
    "/forgot-password",
    "/executions/019cade2-11c0-7c16-bf3e-17fae47e173e",
    "/reports/019cade2-11c0-7c16-bf3e-17fae47e173e",
    "/projects/019cade2-11c0-7c16-bf3e-17fae47e173e/knownfailures/019cade2-11c0-7c16-bf3e-17fae47e173e/delete",
    "/executions/019cade2-11c0-7c16-bf3e-17fae47e173e/shares",
    "/executions/019cade2-11c0-7c16-bf3e-17fae47e173e/shares/019cade2-11c0-7c16-bf3e-17fae47e173e/delete",
    "/account/customer",
    "/account/tokens",
    "/account/tokens/019cade2-11c0-7c16-bf3e-17fae47e173e/delete",
];

impl Reader {
    /// Sends the form of the login from a page of this host.
    async fn submit_login(&self, next: &str, password: &str) -> Answer {
        let form = [("email", self.member.email.as_str()), ("password", password), ("next", next)];
        let request = self.client.post(format!("{}/login", self.url));
        Answer::of(filled(request, &form).header("sec-fetch-site", "same-origin")).await
    }
}

#[tokio::test]
async fn a_login_sets_a_cookie_that_only_this_host_and_no_script_can_read() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let password = password_of(&reader.member.email);

    let answer = reader.submit_login("/projects/x?q=1", &password).await;
    answer.expect(303);
    assert_eq!(answer.headers["location"], "/projects/x?q=1");
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-assay="), "{cookie}");
    for attribute in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/", "Max-Age="] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    for elsewhere in ["//evil.test", "/\\evil.test", "https://evil.test", "/\t/evil.test"] {
        let answer = reader.submit_login(elsewhere, &password).await;
        assert_eq!(answer.headers["location"], "/", "{elsewhere}");
    }

    let wrong = reader.submit_login("/", "not the password").await;
    assert!(!wrong.headers.contains_key("set-cookie"), "{wrong}");
    let page = wrong.expect(422);
    assert!(String::from_utf8_lossy(&page.body).contains("is not correct"), "{page}");
}

#[tokio::test]
async fn a_form_of_another_page_is_rejected() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let host = reader.url.trim_start_matches("http://").to_owned();
    let own = format!("http://{host}");
    for path in FORMS {
        for (header, value) in [
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "none"),
            ("origin", "http://evil.test"),
            ("origin", "null"),
            ("x-nothing", "x"),
        ] {
            let answer = Answer::of(reader.request(Method::POST, path).header(header, value)).await;
            let page = answer.expect(403);
            assert!(String::from_utf8_lossy(&page.body).contains("Not allowed"), "{page}");
        }
        let answer = Answer::of(reader.request(Method::POST, path).header("origin", &own)).await;
        assert_ne!(answer.status, 403, "{answer}");
    }
}

#[tokio::test]
async fn pages_without_a_valid_session_lead_to_the_login_and_back() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let page = "/projects/019cade2-11c0-7c16-bf3e-17fae47e173e?branch=main";
    let login = "/login?next=%2Fprojects%2F019cade2-11c0-7c16-bf3e-17fae47e173e%3Fbranch%3Dmain";

    let anonymous = Answer::of(reader.client.get(format!("{}{page}", reader.url))).await;
    assert_eq!(anonymous.expect(303).headers["location"], login);
    reader.get(page).await.expect(404);

    let logout = reader.request(Method::POST, "/logout").header("sec-fetch-site", "same-origin");
    let logout = logout.header("cookie", format!("__Host-assay={}", reader.api().token()));
    let logout = Answer::of(logout).await;
    assert_eq!(logout.expect(303).headers["location"], "/login");
    let removed = logout.headers["set-cookie"].to_str().unwrap();
    assert!(removed.contains("Max-Age=0"), "{removed}");
    assay_testkit::eventually("the revocation", || async {
        let revoked = reader.get(page).await;
        (revoked.status == 303 && revoked.headers["location"] == login).then_some(())
    })
    .await;
}
