//! A running identity service, and requests to it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use assay_auth::{Caller, Verifier, anonymous};
use assay_identity::{FirstLogin, start};
use assay_proto::{
    AccountId, Reference, UserId,
    identity::{
        AcceptInvitationInput, AcceptInvitationRequest, CreateCustomerRequest, CreateUserRequest,
        CustomerInput, LoginInput, LoginRequest, PreparePasswordResetInput,
        PreparePasswordResetRequest, RefineRequest, ResetPasswordInput, ResetPasswordRequest, User,
        UserInput, api_token_service_client::ApiTokenServiceClient,
        audit_service_client::AuditServiceClient, customer_service_client::CustomerServiceClient,
        statement_service_client::StatementServiceClient, token_service_client::TokenServiceClient,
        user_group_service_client::UserGroupServiceClient, user_service_client::UserServiceClient,
        user_settings_service_client::UserSettingsServiceClient,
    },
};
use assay_rpc::grpc::{self, Channel};
use assay_runtime::{Runtime, install_crypto};
use assay_testkit::eventually;
use sqlx::PgPool;
use tokio::sync::oneshot;
use tonic::Status;
use tonic_types::StatusExt;

pub(crate) use crate::settings::Settings;

pub(crate) const ADMIN: &str = "Ada@Example.com";
pub(crate) const PASSWORD: &str = "correct horse battery staple";

pub(crate) fn customer_input(subdomain: &str) -> CustomerInput {
    CustomerInput {
        name: format!("Customer {subdomain}"),
        subdomain: subdomain.to_owned(),
        ..CustomerInput::default()
    }
}

/// The decoded text of a mail.
pub(crate) fn readable(mail: &str) -> String {
    mail.replace("=\r\n", "").replace("=3D", "=")
}

/// The origin and the token of the link in a mail.
pub(crate) fn link(mail: &str) -> Result<(String, String)> {
    let mail = readable(mail);
    let (before, after) =
        mail.split_once("/reset-password#token=").context("the mail has no link")?;
    let origin = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let token = after.split(char::is_whitespace).next().unwrap_or_default();
    Ok((origin.to_owned(), token.to_owned()))
}

/// The code of the error.
pub(crate) fn reason(status: &Status) -> String {
    let info = status.get_error_details().error_info().cloned();
    info.map(|info| info.reason).unwrap_or_default()
}

/// A running service.
pub(crate) struct Identity {
    pub(crate) runtime: Runtime,
    pub(crate) first_login: oneshot::Receiver<FirstLogin>,
    pub(crate) db: PgPool,
    pub(crate) mail_dir: PathBuf,
    channel: Channel,
}

impl Identity {
    /// Starts a service with [`ADMIN`] as the operator's administrator.
    pub(crate) async fn new() -> Result<Self> {
        Self::start(&Settings::new().await?.with_administrator()).await
    }

    pub(crate) async fn start(settings: &Settings) -> Result<Self> {
        let identity = Self::launch(settings).await?;
        identity.runtime.ready().await;
        anyhow::ensure!(identity.runtime.is_ready(), "the service has stopped");
        Ok(identity)
    }

    /// Starts a service without waiting until it is ready.
    pub(crate) async fn launch(settings: &Settings) -> Result<Self> {
        install_crypto();
        let runtime = Runtime::new("assay-identity");
        let started = start(&runtime, settings.config()?).await?;
        Ok(Self {
            runtime,
            first_login: started.first_login,
            db: PgPool::connect_lazy(&settings.database_url)?,
            mail_dir: settings.mail_dir.clone(),
            channel: grpc::connect(&format!("http://{}", started.address))?,
        })
    }

    pub(crate) fn tokens(&self) -> TokenServiceClient<Channel> {
        TokenServiceClient::new(self.channel.clone())
    }

    pub(crate) fn customers(&self) -> CustomerServiceClient<Channel> {
        CustomerServiceClient::new(self.channel.clone())
    }

    pub(crate) fn statements(&self) -> StatementServiceClient<Channel> {
        StatementServiceClient::new(self.channel.clone())
    }

    pub(crate) fn groups(&self) -> UserGroupServiceClient<Channel> {
        UserGroupServiceClient::new(self.channel.clone())
    }

    pub(crate) fn users(&self) -> UserServiceClient<Channel> {
        UserServiceClient::new(self.channel.clone())
    }

    pub(crate) fn settings(&self) -> UserSettingsServiceClient<Channel> {
        UserSettingsServiceClient::new(self.channel.clone())
    }

    pub(crate) fn api_tokens(&self) -> ApiTokenServiceClient<Channel> {
        ApiTokenServiceClient::new(self.channel.clone())
    }

    pub(crate) fn audit(&self) -> AuditServiceClient<Channel> {
        AuditServiceClient::new(self.channel.clone())
    }

    /// Whether a caller's token is accepted.
    pub(crate) async fn accepts(&self, caller: &Caller) -> bool {
        self.customers().get_current_customer(caller.call(())).await.is_ok()
    }

    /// The id of the group with this name at the caller's customer.
    pub(crate) async fn group(&self, caller: &Caller, name: &str) -> Result<String> {
        let customer = self.customers().get_current_customer(caller.call(())).await?.into_inner();
        let group = customer.user_groups.into_iter().find(|group| group.name == name);
        Ok(group.context("no such group")?.id)
    }

    /// Adds a user to a group of the caller's customer.
    pub(crate) async fn user(&self, caller: &Caller, email: &str, group: &str) -> Result<User> {
        let group = Reference { id: self.group(caller, group).await? };
        let user = UserInput {
            email: email.to_owned(),
            display_name: "Grace Hopper".to_owned(),
            user_group: Some(group),
        };
        let request = CreateUserRequest { user: Some(user) };
        Ok(self.users().create_user(caller.call(request)).await?.into_inner())
    }

    /// Adds a user with the password [`PASSWORD`]; returns the caller after a login.
    pub(crate) async fn member(&self, caller: &Caller, email: &str, group: &str) -> Result<Caller> {
        let user = self.user(caller, email, group).await?;
        self.no_mail_is_queued().await;
        sqlx::query(
            "insert into account (id, email, password_hash)
             select $1, $2, password_hash from account where email = $3
             on conflict (lower(email)) do nothing",
        )
        .bind(AccountId::new())
        .bind(email)
        .bind(ADMIN)
        .execute(&self.db)
        .await?;
        sqlx::query(
            "with accepted as (delete from invitation where user_id = $1::uuid)
             update membership
             set account_id = (select id from account where lower(email) = lower($2))
             where id = $1::uuid",
        )
        .bind(&user.id)
        .bind(email)
        .execute(&self.db)
        .await?;
        let member = self.caller_of(email).await?;
        if member.customer == caller.customer {
            return Ok(member);
        }
        self.caller(&self.refine(&member, &caller.customer.to_string()).await?).await
    }

    /// Waits until all mails are sent.
    pub(crate) async fn no_mail_is_queued(&self) {
        eventually("the mails to be sent", async || {
            let queued = sqlx::query_scalar("select count(*) from mail").fetch_one(&self.db).await;
            (queued.ok() == Some(0_i64)).then_some(())
        })
        .await;
    }

    /// The operator's administrator as a visitor of a new customer.
    pub(crate) async fn visitor(&self, subdomain: &str) -> Result<Caller> {
        let caller = self.caller_of(ADMIN).await?;
        let customer = customer_input(subdomain);
        let request = CreateCustomerRequest { customer: Some(customer) };
        let customer = self.customers().create_customer(caller.call(request)).await?.into_inner();
        self.caller(&self.refine(&caller, &customer.id).await?).await
    }

    pub(crate) async fn prepare_reset(&self, email: &str, host: &str) -> Result<(), Status> {
        let (user_email, host) = (email.to_owned(), host.to_owned());
        let reset = Some(PreparePasswordResetInput { user_email, host });
        let request = anonymous(PreparePasswordResetRequest { reset });
        self.users().prepare_password_reset(request).await.map(drop)
    }

    pub(crate) async fn reset(&self, token: &str, password: &str) -> Result<(), Status> {
        let (token, new_password) = (token.to_owned(), password.to_owned());
        let reset = Some(ResetPasswordInput { new_password, token });
        self.users().reset_password(anonymous(ResetPasswordRequest { reset })).await.map(drop)
    }

    /// Accepts an invitation by its link.
    pub(crate) async fn accept(&self, token: &str) -> Result<(), Status> {
        let invitation = Some(AcceptInvitationInput { token: token.to_owned() });
        let request = anonymous(AcceptInvitationRequest { invitation });
        self.users().accept_invitation(request).await.map(drop)
    }

    /// Waits for this number of mails; returns the token of the link in the last one.
    pub(crate) async fn token(&self, mails: usize) -> Result<String> {
        Ok(link(&self.mails(mails).await[mails - 1])?.1)
    }

    /// The account of a user.
    pub(crate) async fn account_of(&self, user: UserId) -> Result<AccountId> {
        let account = sqlx::query_scalar("select account_id from membership where id = $1");
        Ok(account.bind(user).fetch_one(&self.db).await?)
    }

    /// Waits for this number of mails and returns them, oldest first.
    pub(crate) async fn mails(&self, count: usize) -> Vec<String> {
        eventually("mails", async || {
            let entries = std::fs::read_dir(&self.mail_dir).ok()?;
            let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            files.retain(|path| path.extension().is_some_and(|ending| ending == "eml"));
            files.sort();
            let mails = files.iter().map(|path| std::fs::read_to_string(path).ok());
            mails.collect::<Option<Vec<_>>>().filter(|mails| mails.len() == count)
        })
        .await
    }

    pub(crate) async fn login(&self, email: &str, password: &str) -> Result<String, Status> {
        self.login_at("", email, password).await
    }

    pub(crate) async fn login_at(
        &self,
        host: &str,
        email: &str,
        password: &str,
    ) -> Result<String, Status> {
        let login = LoginInput { email: email.to_owned(), password: password.to_owned() };
        let request = LoginRequest { login: Some(login), host: host.to_owned() };
        Ok(self.tokens().login(anonymous(request)).await?.into_inner().token)
    }

    pub(crate) async fn refine(&self, caller: &Caller, customer: &str) -> Result<String, Status> {
        let request = RefineRequest { customer_id: customer.to_owned() };
        Ok(self.tokens().refine(caller.call(request)).await?.into_inner().token)
    }

    pub(crate) async fn keys(&self) -> Result<String, Status> {
        Ok(self.tokens().list_keys(anonymous(())).await?.into_inner().jwks)
    }

    /// The caller of a token.
    pub(crate) async fn caller(&self, token: &str) -> Result<Caller> {
        Ok(Verifier::of_keys(&self.keys().await?)?.verify(token).await?)
    }

    /// The caller after a login of the account.
    pub(crate) async fn caller_of(&self, email: &str) -> Result<Caller> {
        self.caller(&self.login(email, PASSWORD).await?).await
    }
}
