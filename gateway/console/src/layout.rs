//! The frame of all pages.

use axum::response::{Html, IntoResponse, Response};
use http::{
    StatusCode,
    header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY},
};
use maud::{DOCTYPE, Markup, html};

use crate::{
    asset::{ICON, SCRIPT, STYLE},
    chart::sprite,
    claims::Claims,
    text::{clean, plain},
};

/// Allows files of this host only, and neither inline code nor frames.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      media-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// A page for a user.
pub(crate) struct Page<'a> {
    pub(crate) user: &'a Claims,
    pub(crate) title: String,
    /// The pages above this one, from the outermost.
    pub(crate) trail: Vec<Crumb>,
    pub(crate) body: Markup,
}

/// A page in the trail: its path and its name.
pub(crate) struct Crumb(pub(crate) String, pub(crate) Markup);

impl IntoResponse for Page<'_> {
    fn into_response(self) -> Response {
        let Self { user, title, trail, body } = self;
        let header = html! {
            (logo())
            nav.trail aria-label="Breadcrumb" {
                ol { @for Crumb(path, name) in &trail {
                    li { a href=(path) { (name) } }
                } }
            }
            form.user method="post" action="/logout" {
                a.name href="/account" { bdi { (plain(&user.name)) } }
                button.quiet { "Log out" }
            }
        };
        document(StatusCode::OK, &title, &header, &body)
    }
}

/// Returns a page without a user: a form or a failure.
pub(crate) fn bare(status: StatusCode, title: &str, body: &Markup) -> Response {
    let body = html! { div.bare { h1 { (title) } (body) } };
    document(status, title, &logo(), &body)
}

/// Returns a page for readers without an account.
pub(crate) fn open(title: &str, body: &Markup) -> Response {
    document(StatusCode::OK, title, &logo(), body)
}

fn logo() -> Markup {
    html! {
        a.logo href="/" {
            svg viewBox="0 0 24 24" aria-hidden="true" {
                path d="M12 2 22 12 12 22 2 12Z" {}
                path.k d="m8 12.2 2.8 2.8L16 9.6" {}
            }
            "Assay"
        }
    }
}

fn document(status: StatusCode, title: &str, header: &Markup, body: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (clean(title)) " · Assay" }
                link rel="icon" href=(ICON.url()) type="image/svg+xml";
                link rel="stylesheet" href=(STYLE.url());
                script src=(SCRIPT.url()) defer {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                (sprite())
                header.top { (header) }
                main #main tabindex="-1" { (body) }
                footer {
                    a href="/docs" { "API documentation" }
                    span.keyboard { "Press " kbd { "?" } " for keys" }
                }
                (keys())
            }
        }
    };
    let headers = [(CONTENT_SECURITY_POLICY, POLICY), (REFERRER_POLICY, "same-origin")];
    (status, headers, Html(page.into_string())).into_response()
}

/// The keys that the script handles, which `?` shows.
fn keys() -> Markup {
    const KEYS: [(&str, &str); 13] = [
        ("j", "Next row, next test"),
        ("k", "Previous row, previous test"),
        ("n p", "Next and previous cause"),
        ("x", "Select the row"),
        ("c", "Select the cause of the row"),
        ("a r i", "Accept, reject or investigate the selection"),
        ("m", "Write a comment"),
        ("z", "Undo the judgement"),
        ("t", "Triage the causes one after the other"),
        ("Enter", "Open the row"),
        ("u", "Back to the list"),
        ("/", "Search"),
        ("?", "Show this help"),
    ];
    html! {
        dialog #help aria-labelledby="help-title" {
            h2 #help-title { "Keys" }
            dl.keys { @for (key, meaning) in KEYS { dt { kbd { (key) } } dd { (meaning) } } }
            label.check { input #keys type="checkbox" checked; " Use keys" }
            form method="dialog" { button.primary { "Close" } }
        }
    }
}
