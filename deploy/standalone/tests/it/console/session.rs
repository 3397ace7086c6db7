//! Logins, logouts and requests that other pages send.

use std::path::Path;

use assay_testkit::Answer;
use reqwest::Method;

use super::{Reader, filled};
use crate::{customer::Customer, people::password_of};

const SOME_ID: &str = "019cade2-11c0-7c16-bf3e-17fae47e173e";

/// Returns the paths to which pages send forms, from the routes in the sources of the console.
fn forms() -> Vec<String> {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gateway/console/src");
    let (mut folders, mut forms) = (vec![pages], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
                continue;
            }
            let source = std::fs::read_to_string(&entry).unwrap();
            for route in source.split(".route(\"").skip(1) {
                let (path, handlers) = route.split_once('"').unwrap();
                let handlers = handlers.split(".route(\"").next().unwrap();
                let handlers = handlers.split(['\n', ';']).next().unwrap();
                let changes = ["post(", "put(", "patch(", "delete(", "any("];
                let is_form = changes.iter().any(|method| handlers.contains(method));
                // The last route answers unknown paths.
                if is_form && !path.contains("{*") {
                    forms.push(with_ids(path));
                }
            }
        }
    }
    forms
}

/// Returns a path with ids in place of its parameters.
fn with_ids(path: &str) -> String {
    let id = |part: &str| if part.starts_with('{') { SOME_ID.to_owned() } else { part.to_owned() };
    path.split('/').map(id).collect::<Vec<_>>().join("/")
}

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
    let forms = forms();
    assert!(forms.len() >= 12 && forms.contains(&"/logout".to_owned()), "{forms:?}");
    for path in &forms {
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
            let text = String::from_utf8_lossy(&page.body);
            assert!(text.contains("was not sent by a page of this host"), "{page}");
            assert!(!text.contains("Your permissions"), "{page}");
        }
        let answer = Answer::of(reader.request(Method::POST, path).header("origin", &own)).await;
        assert_ne!(answer.status, 403, "{answer}");
        // Without a session, nothing but a login and a request for a new password is possible.
        let anonymous = reader.client.post(format!("{own}{path}")).header("origin", &own);
        let anonymous = Answer::of(anonymous).await;
        let is_open = ["/login", "/forgot-password"].contains(&path.as_str());
        let logins = ["/login", "/login?ended=yes"];
        let leads_to_login = anonymous
            .headers
            .get("location")
            .is_some_and(|to| logins.iter().any(|login| to == login));
        assert!(is_open || leads_to_login, "{path}: {anonymous}");
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
    // The login says why a form was not accepted, and leads back to its page.
    let form = format!("{}/executions/{SOME_ID}?change=New", reader.url);
    let sent = reader.client.post(&form).header("origin", &reader.url).header("referer", &form);
    let sent = Answer::of(sent).await.expect(303).headers["location"].to_str().unwrap().to_owned();
    assert_eq!(sent, format!("/login?next=%2Fexecutions%2F{SOME_ID}%3Fchange%3DNew&ended=yes"));
    let login_page = Answer::of(reader.client.get(format!("{}{sent}", reader.url))).await;
    let login_page = String::from_utf8_lossy(&login_page.expect(200).body).into_owned();
    assert!(login_page.contains("Your session has ended"), "{login_page}");
    // A path that only takes a form leads to its page.
    assert_eq!(reader.get("/account/tokens").await.expect(303).headers["location"], "/account");

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
