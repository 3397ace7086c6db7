//! Customers and their users.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    installation::Installation,
    world::{id, log_in},
};

pub(crate) const GROUPS: &str = "/api/management/customers/current/groups";

/// A logged-in member of a customer.
pub(crate) struct Member {
    pub(crate) api: Api,
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) group: String,
}

impl Installation {
    /// Creates a customer.
    pub(crate) async fn create_customer(&self, subdomain: &str) -> Value {
        let customer = json!({"Name": subdomain.to_uppercase(), "Subdomain": subdomain});
        self.api.post("/api/management/customers", customer).await.created()
    }

    /// The operator's administrator as a visitor of a customer.
    pub(crate) async fn act_for(&self, customer: &Value) -> Api {
        let refined = refine_token(&self.api, id(customer)).await.ok();
        self.api.with_token(refined["token"].as_str().unwrap())
    }

    /// Creates a customer; returns the operator's administrator as its visitor.
    pub(crate) async fn act_for_new_customer(&self, subdomain: &str) -> Api {
        let customer = self.create_customer(subdomain).await;
        self.act_for(&customer).await
    }

    /// Creates a member with a new group, sets the password and logs in.
    pub(crate) async fn create_member(
        &self,
        admin: &Api,
        email: &str,
        permissions: &str,
    ) -> Member {
        let group = create_group(admin, email, permissions).await;
        self.add_member(admin, email, &group).await
    }

    /// Creates a member of a group, sets the password and logs in.
    pub(crate) async fn add_member(&self, admin: &Api, email: &str, group: &Value) -> Member {
        let user = create_user(admin, email, id(group)).await.created();
        let password = self.set_first_password(email).await;
        let api = log_in(&self.anonymous(), email, &password).await;
        let [user, group] = [&user, group].map(|record| id(record).to_owned());
        Member { api, id: user, email: email.to_owned(), group }
    }

    /// Sets the password of a new user by the link in the mail.
    pub(crate) async fn set_first_password(&self, email: &str) -> String {
        let password = password_of(email);
        let mail = self.take_mail_to(email).await;
        reset_password(&self.anonymous(), mail.token(), &password).await.ok();
        password
    }

    /// Accepts the invitation of a user who has a password.
    pub(crate) async fn accept_invitation(&self, email: &str) {
        let mail = self.take_mail_to(email).await;
        let token = json!({"Token": mail.token()});
        self.anonymous().put("/api/users/reset/accept", token).await.ok();
    }

    /// Logs in; returns the client of the user.
    pub(crate) async fn log_in(&self, email: &str) -> Api {
        log_in(&self.anonymous(), email, &password_of(email)).await
    }
}

/// The password of a test user.
pub(crate) fn password_of(email: &str) -> String {
    format!("the long phrase of {}", email.split('@').next().unwrap().to_uppercase())
}

pub(crate) async fn refine_token(api: &Api, customer: &str) -> Answer {
    api.post("/api/token/refine", json!({"CustomerId": customer})).await
}

/// Creates a group.
pub(crate) async fn create_group(api: &Api, name: &str, permissions: &str) -> Value {
    let group = json!({"Name": name, "UsagePermission": permissions});
    api.post(GROUPS, group).await.created()
}

/// Creates a user in a group.
pub(crate) async fn create_user(api: &Api, email: &str, group: &str) -> Answer {
    let user = json!({"DisplayName": "Grace", "Email": email, "UserGroup": {"Id": group}});
    api.post("/api/users", user).await
}

pub(crate) async fn request_password_reset(api: &Api, email: &str, host: &str) -> Answer {
    api.put("/api/users/reset/prepare", json!({"UserEmail": email, "Host": host})).await
}

pub(crate) async fn reset_password(api: &Api, token: &str, password: &str) -> Answer {
    api.put("/api/users/reset", json!({"Token": token, "NewPassword": password})).await
}

pub(crate) async fn try_login(api: &Api, email: &str, password: &str) -> Answer {
    api.post("/api/token/login", json!({"Email": email, "Password": password})).await
}

/// Logs in with a forwarded address.
pub(crate) async fn try_login_from(
    api: &Api,
    address: &str,
    email: &str,
    password: &str,
) -> Answer {
    let login = json!({"Email": email, "Password": password});
    let request = api.request(Method::POST, "/api/token/login").json(&login);
    Answer::of(request.header("X-Forwarded-For", address)).await
}
