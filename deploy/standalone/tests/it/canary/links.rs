//! Secrets in URLs, mails, forms and cookies.

use std::path::Path;

use assay_testkit::{Answer, Api, eventually};
use reqwest::{Client, Method, redirect::Policy};
use serde_json::json;

use crate::{
    mail::Mail,
    process::PASSWORD,
    world::{create_project, id},
};

/// Shares an execution with a file, and reads it by its link, as a page and over the interface. Returns
/// the secrets of both links.
pub(super) async fn share(api: &Api, url: &str) -> Vec<String> {
    let project = create_project(api).await;
    let open = json!({"Project": project.rsplit('/').next(), "TestSet": "Nightly"});
    let open = api.post("/api/executions", open).await.created();
    let at = format!("{project}/executions/{}", id(&open));
    let picture = api.request(Method::PUT, &format!("{at}/results/artifacts/shop.png"));
    Answer::of(picture.body("a picture")).await.ok();
    let results = json!([{"Identifier": "pays", "Result": "Failed", "Steps": [
        {"StepNr": 1, "Result": "Failed", "ActualResult": "lost", "Screenshots": ["shop.png"]},
    ]}]);
    api.post(&format!("{at}/results"), results).await.ok();
    api.post(&format!("{at}/complete"), json!({})).await.expect(200);
    let share = api.post(&format!("{at}/shares"), json!({})).await.created();
    let token = share["Token"].as_str().unwrap();
    let reader = Api::new(url);
    let of = |path: &str| reader.request(Method::GET, &path.replace("TOKEN", token));
    let reports = Answer::of(of("/api/shared/TOKEN/reports")).await.ok();
    for path in ["/api/shared/TOKEN", "/api/shared/TOKEN/badge.svg", "/shared/TOKEN"] {
        Answer::of(of(path)).await.expect(200);
    }
    for path in ["/shared/TOKEN/none", "/shared/TOKEN?cursor=TOKEN", "/api/shared/TOKEN/none"] {
        Answer::of(of(path)).await;
    }
    let report = format!("/shared/TOKEN/reports/{}", id(&reports[0]));
    Answer::of(of(&report)).await.expect(200);
    let instance = Answer::of(of(&format!("/api{report}"))).await.ok();
    let link = instance["Steps"][0]["Screenshots"][0].as_str().unwrap();
    let file = format!("/api/artifacts/{}", link.split_once("/api/artifacts/").unwrap().1);
    Answer::of(of(&file)).await.expect(200);
    Answer::of(of(&file.replace("shop.png", "other.png"))).await.expect(403);
    let signature = file.split_once("signature=").unwrap().1.split('&').next().unwrap();
    vec![token.to_owned(), signature.to_owned()]
}

/// Requests a new password, and tries the link of the mail. Returns its secret, which the mail contains.
pub(super) async fn reset_password(api: &Api, data: &Path) -> String {
    let request = json!({"UserEmail": "ada@example.org", "Host": ""});
    api.put("/api/users/reset/prepare", request).await.ok();
    let mail = eventually("a mail", || async {
        let files = std::fs::read_dir(data.join("mail")).ok()?;
        let mut mails = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
        mails.find(|mail| mail.contains("#token"))
    })
    .await;
    let token = Mail::read(&mail).token().to_owned();
    let reset = json!({"Token": token, "NewPassword": "short"});
    api.put("/api/users/reset", reset).await.expect(422);
    token
}

/// Logs in with the form of the console, and reads pages with its cookie; reads with the header of
/// TestRail's clients. Returns the tokens.
pub(super) async fn visit(api: &Api, url: &str) -> Vec<String> {
    let client = Client::builder().redirect(Policy::none()).build().unwrap();
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    let form = form.extend_pairs([("email", "ada@example.org"), ("password", PASSWORD)]).finish();
    let login = client.post(format!("{url}/login")).header("sec-fetch-site", "same-origin");
    let login = login.header("content-type", "application/x-www-form-urlencoded").body(form);
    let login = Answer::of(login).await;
    let cookie = login.expect(303).headers["set-cookie"].to_str().unwrap().to_owned();
    let cookie = cookie.split(';').next().unwrap();
    for path in ["/", "/account", "/projects/none", "/executions/none"] {
        let page = client.get(format!("{url}{path}")).header("cookie", cookie);
        Answer::of(page.header("sec-fetch-site", "none")).await;
    }

    let token = json!({"Name": "TestRail", "UsagePermission": "Read"});
    let token = api.post("/api/users/current/tokens", token).await.created();
    let secret = token["Secret"].as_str().unwrap();
    let request = client.get(format!("{url}/index.php?/api/v2/get_projects"));
    Answer::of(request.basic_auth("ada@example.org", Some(secret))).await;
    vec![cookie.split_once('=').unwrap().1.to_owned(), secret.to_owned()]
}
