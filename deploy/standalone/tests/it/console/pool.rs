//! The pages of pools: one is created, its values are changed, and it stays while tests need it.

use serde_json::{Value, json};

use super::{Reader, numbers::between};
use crate::{
    browser::Browser,
    customer::Customer,
    world::{create_project, id},
};

const LEASES: &str = "/api/automation/leases";

/// Starts a test whose subject takes its user from a pool. An engine leases it. Returns the path of its set.
async fn start(customer: &Customer, project: &str, pool: &str) -> String {
    let api = &customer.api;
    let user = json!({"Name": "SHOP_USER", "DisplayName": "", "PoolName": pool, "IsSecured": false,
        "ValidationRule": "", "Content": "own"});
    let subject = json!({"Name": "Shop", "Identifier": "1.2.3", "SubjectType": "Webpage",
        "Uri": "https://shop.example.org/", "Variables": [user]});
    let subject = api.post(&format!("{project}/subjects"), subject).await.created();
    let environment = json!({"Name": "Lab", "TargetGroup": "lab"});
    let environment = api.post(&format!("{project}/environments"), environment).await.created();
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Smoke"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    let selected =
        json!({"SelectedEnvironmentId": environment["Id"], "SelectedSubjectId": subject["Id"]});
    api.put(&set, selected).await.ok();
    let case = json!({"Name": "Log in", "Description": "", "Identifier": "LOGIN"});
    let case = api.post(&format!("{project}/testcases"), case).await.created();
    let plans = format!("{project}/testcases/{}/testplans", id(&case));
    let plan = api.post(&plans, json!({"Instances": 1})).await.created();
    let plan = format!("{plans}/{}", id(&plan));
    let steps = json!([{"TestInput": "Open the page", "ExpectedResult": "It opens"}]);
    api.put(&format!("{plan}/automationSteps"), steps).await.ok();
    api.put(&plan, json!({"Status": "ReadyForExecution"})).await.ok();
    api.put(&format!("{set}/testcases"), json!({"Id": case["Id"]})).await.ok();
    api.post(&format!("{set}/executions"), json!({})).await.created();

    let member = customer.create_member("engine", "Login, Automation").await;
    let token = json!({"Name": "Lab 1", "UsagePermission": "Automation"});
    let token = member.api.post("/api/users/current/tokens", token).await.created();
    let engine = customer.anonymous().with_token(token["Secret"].as_str().unwrap());
    let request =
        json!({"TargetGroup": "lab", "Engine": "lab-1", "MaxSchedules": 1, "WaitInSec": 30});
    let leases = engine.post(LEASES, request).await.ok();
    assert_eq!(leases.as_array().map(Vec::len), Some(1), "{leases}");
    set
}

/// Returns the contents of the values of a pool, as callers see them.
fn contents(pool: &Value) -> Vec<Vec<&str>> {
    let values = pool["Values"].as_array().unwrap().iter();
    values
        .map(|value| {
            let contents = value["Contents"].as_array().unwrap().iter();
            contents.map(|content| content["Content"].as_str().unwrap()).collect()
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_created_changed_and_stays_while_tests_need_it() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let project = create_project(reader.api()).await;
    let pools = format!("{}/pools", project.strip_prefix("/api").unwrap());
    let browser = Browser::open_without_scripts().await;
    reader.open(&browser, &pools).await;
    browser.read_until(".empty", |text| text == "This project has no pools.").await;

    // Its first value is a user with a secret.
    browser.type_into("[name=name]", "customers").await;
    browser.type_into("[aria-label='Content 1'] [name=variable]", "SHOP_USER").await;
    browser.type_into("[aria-label='Content 1'] textarea", "ada").await;
    browser.type_into("[aria-label='Content 2'] [name=variable]", "SHOP_PASSWORD").await;
    browser.type_into("[aria-label='Content 2'] [type=password]", "sesame").await;
    browser.click("form[action$='/pools'] button").await;
    browser.read_until(".done", |text| text == "Saved.").await;
    let page = browser.client.current_url().await.unwrap().path().to_owned();
    browser.read_until(".badge", |text| text == "None in use now").await;
    browser.read_until(".rows", |text| text.contains("********") && !text.contains("sesame")).await;

    // The form of the next value has the same variables.
    browser.type_into("form [aria-label='Content 1'] textarea", "alan").await;
    browser.type_into("form [aria-label='Content 2'] [type=password]", "open").await;
    browser.click("form[action$='/values'] button").await;
    browser.read_until(".rows", |text| text.contains("alan")).await;
    let pool = reader.api().get(&format!("/api{page}")).await.ok();
    let variable = &pool["Values"][1]["Contents"][1];
    assert_eq!(
        (&variable["Name"], &variable["IsSecured"]),
        (&json!("SHOP_PASSWORD"), &json!(true))
    );

    // A value is changed; its secret stays unless it is replaced.
    browser.click("[aria-label='Change value 1']").await;
    let user = browser.find("#value [aria-label='Content 1'] textarea").await;
    user.clear().await.unwrap();
    user.send_keys("grace").await.unwrap();
    browser.click("#value button").await;
    browser.read_until(".rows", |text| text.contains("grace") && !text.contains("ada")).await;
    let pool = reader.api().get(&format!("/api{page}")).await.ok();
    assert_eq!(contents(&pool), [["grace", "********"], ["alan", "********"]]);

    // While a test uses a value, the pool says so and cannot be deleted.
    let set = start(&customer, &project, "customers").await;
    reader.open(&browser, &page).await;
    browser.read_until(".badge", |text| text == "1 of 2 in use now").await;
    browser.click("details summary").await;
    browser.click("details button").await;
    browser.read_until("[role=alert]", |text| text.contains("queued or running")).await;
    browser.client.clone().close().await.unwrap();
    reader.get(&page).await.expect(200);

    // Work that waits says of which pool it needs a value.
    customer.api.post(&format!("{set}/executions"), json!({})).await.created();
    let queues = reader.api().get("/api/queues").await.ok();
    let needed = &queues["Items"][0]["Pools"][0];
    assert_eq!((&needed["Id"], &needed["Name"]), (&pool["Id"], &json!("customers")), "{queues}");
    let engines = reader.text("/engines").await;
    assert!(engines.contains("with a value of") && engines.contains(&page), "{engines}");
}

#[tokio::test]
async fn a_change_of_a_pool_that_is_refused_stays_in_the_form() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let project = create_project(reader.api()).await;
    let value = |user: &str| json!({"Contents": [{"Name": "USER", "Content": user}]});
    let pool = json!({"Name": "customers", "Values": [value("ada"), value("alan")]});
    let at = format!("{project}/pools");
    let pool = reader.api().post(&at, pool).await.created();
    let pools = at.strip_prefix("/api").unwrap();
    let page = format!("{pools}/{}", id(&pool));
    let (first, old) = (pool["Values"][0]["Id"].as_str().unwrap(), pool["DataVersion"].as_str());
    let old = old.unwrap();
    let refused = async |path: &str, fields: &[(&str, &str)]| {
        let answer = reader.post(path, fields).await;
        String::from_utf8_lossy(&answer.expect(422).body).into_owned()
    };

    let values = format!("{page}/values");
    let changed = [("version", old), ("value", first), ("variable", "USER"), ("content", "grace")];
    reader.post(&values, &changed).await.expect(303);
    let late = [("version", old), ("value", first), ("variable", "USER"), ("content", "edsger")];
    let html = refused(&values, &late).await;
    assert!(html.contains("Somebody else") && html.contains(">\nedsger</textarea>"), "{html}");
    let form = between(&html, "id=\"value\"", "</form>").unwrap();
    assert!(form.contains("The value is now:") && form.contains("<bdi>grace</bdi>"), "{form}");
    let twice =
        [("value", ""), ("variable", "A"), ("content", "1"), ("variable", "A"), ("content", "2")];
    let html = refused(&values, &twice).await;
    assert!(html.contains("must be unique in its value"), "{html}");
    let typed = [("value", ""), ("variable", "A"), ("secret", "sesame"), ("variable", "A")];
    let html = refused(&values, &[&typed[..], &[("secret", "open")]].concat()).await;
    assert!(html.contains("must be unique in its value"), "{html}");
    assert!(
        !html.contains("sesame") && !html.contains("\"open\""),
        "secrets are not shown: {html}"
    );
    let html = refused(pools, &[("name", "customers"), ("variable", ""), ("content", "x")]).await;
    assert!(html.contains("value=\"customers\"") && html.contains(">\nx</textarea>"), "{html}");

    // Values are removed, but for the last one.
    reader.post(&values, &[("value", first), ("remove", "yes")]).await.expect(303);
    let gone = refused(&values, &[("value", first), ("variable", "A"), ("content", "1")]).await;
    assert!(gone.contains("Somebody else has removed this value"), "{gone}");
    let new = between(&gone, "New value", "</form>").unwrap();
    assert!(new.contains("value=\"A\"") && new.contains(">\n1</textarea>"), "{new}");
    reader.post(&values, &[("value", first), ("remove", "yes")]).await.expect(303);
    let last = reader.api().get(&format!("/api{page}")).await.ok();
    let last = last["Values"][0]["Id"].as_str().unwrap();
    refused(&values, &[("value", last), ("remove", "yes")]).await;

    // A member with only the permission to read sees neither forms nor buttons.
    let viewer = Reader::with(&customer, "vera", "Login, Read").await;
    for path in [pools, &page] {
        let html = viewer.text(path).await;
        assert!(!html.contains("<textarea") && !html.contains("Delete"), "{html}");
    }
    assert!(viewer.text(&page).await.contains("alan"));
    viewer.post(&values, &[("value", last), ("remove", "yes")]).await.expect(403);
    viewer.post(&format!("{page}/delete"), &[]).await.expect(403);
    reader.post(&page, &[("name", "shoppers")]).await.expect(303);
    assert!(reader.text(pools).await.contains("shoppers"));
    reader.post(&format!("{page}/delete"), &[]).await.expect(303);
    reader.get(&page).await.expect(404);
}
