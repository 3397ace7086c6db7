//! Customers, and who works for them.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::world::{World, id, log_in};

pub(crate) const GROUPS: &str = "/api/management/customers/current/groups";

/// A member of a customer, logged in.
pub(crate) struct Member {
    pub(crate) api: Api,
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) group: String,
}

impl World {
    /// Adds a customer.
    pub(crate) async fn customer(&self, subdomain: &str) -> Value {
        let customer = json!({"Name": subdomain.to_uppercase(), "Subdomain": subdomain});
        self.api.post("/api/management/customers", customer).await.created()
    }

    /// The operator's administrator, at work for that customer.
    pub(crate) async fn manage(&self, customer: &Value) -> Api {
        let refined = refine(&self.api, id(customer)).await.ok();
        self.api.with_token(refined["token"].as_str().unwrap())
    }

    /// Adds a customer; as the operator's administrator at work for it.
    pub(crate) async fn manage_new(&self, subdomain: &str) -> Api {
        let customer = self.customer(subdomain).await;
        self.manage(&customer).await
    }

    /// Adds a member with a group of their own, has them set their password, and logs them in.
    pub(crate) async fn member(&self, admin: &Api, email: &str, permissions: &str) -> Member {
        let group = group(admin, email, permissions).await;
        let user = user(admin, email, id(&group)).await.created();
        let password = self.set_first_password(email).await;
        let api = log_in(&self.anonymous(), email, &password).await;
        let [user, group] = [&user, &group].map(|record| id(record).to_owned());
        Member { api, id: user, email: email.to_owned(), group }
    }

    /// Does what the mail to a new user asks for.
    pub(crate) async fn set_first_password(&self, email: &str) -> String {
        let password = password_of(email);
        let mail = self.mail_to(email).await;
        reset(&self.anonymous(), mail.token(), &password).await.ok();
        password
    }

    /// Accepts the invitation of somebody who has a password.
    pub(crate) async fn accept_invitation(&self, email: &str) {
        let mail = self.mail_to(email).await;
        let token = json!({"Token": mail.token()});
        self.anonymous().put("/api/users/reset/accept", token).await.ok();
    }

    /// As somebody who logs in.
    pub(crate) async fn log_in(&self, email: &str) -> Api {
        log_in(&self.anonymous(), email, &password_of(email)).await
    }
}

/// What the users of these tests choose.
pub(crate) fn password_of(email: &str) -> String {
    format!("the long phrase of {}", email.split('@').next().unwrap().to_uppercase())
}

pub(crate) async fn refine(api: &Api, customer: &str) -> Answer {
    api.post("/api/token/refine", json!({"CustomerId": customer})).await
}

/// Adds a group.
pub(crate) async fn group(api: &Api, name: &str, permissions: &str) -> Value {
    let group = json!({"Name": name, "UsagePermission": permissions});
    api.post(GROUPS, group).await.created()
}

/// Adds a user to a group.
pub(crate) async fn user(api: &Api, email: &str, group: &str) -> Answer {
    let user = json!({"DisplayName": "Grace", "Email": email, "UserGroup": {"Id": group}});
    api.post("/api/users", user).await
}

pub(crate) async fn prepare(api: &Api, email: &str, host: &str) -> Answer {
    api.put("/api/users/reset/prepare", json!({"UserEmail": email, "Host": host})).await
}

pub(crate) async fn reset(api: &Api, token: &str, password: &str) -> Answer {
    api.put("/api/users/reset", json!({"Token": token, "NewPassword": password})).await
}

pub(crate) async fn attempt(api: &Api, email: &str, password: &str) -> Answer {
    api.post("/api/token/login", json!({"Email": email, "Password": password})).await
}

/// Logs in as if the request came from elsewhere.
pub(crate) async fn attempt_from(api: &Api, address: &str, email: &str, password: &str) -> Answer {
    let login = json!({"Email": email, "Password": password});
    let request = api.request(Method::POST, "/api/token/login").json(&login);
    Answer::of(request.header("X-Forwarded-For", address)).await
}
