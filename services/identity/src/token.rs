//! `TokenService`: login, tokens, sessions and revocations.

mod login;
pub(crate) mod rules;

use std::time::Duration;

use assay_auth::{
    Caller, Grant, LONGEST_EXCHANGED_LIFETIME, Session, UnconfirmedCaller, client_address,
    hash_of_secret,
};
use assay_database::begin;
use assay_proto::{
    CustomerId, Fault, Permission, Permissions, Timestamp,
    identity::{
        ExchangeApiTokenRequest, KeySet, ListRevocationsReply, ListRevocationsRequest, LoginInput,
        LoginRequest, RefineRequest, StreamToken, Token, token_service_server,
    },
};
use assay_records::Check;
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use self::login::Attempt;
pub(crate) use self::login::{PasswordLogin, throttled};
use crate::{
    api_token,
    audit::{self, Actor, Entry},
    customer,
    membership::{self, Membership},
    revocation::{self, Revocations, Scope},
    signing_key::Keys,
    user_group,
};

/// Lifetime of a token that an API token is exchanged for.
const EXCHANGED_LIFETIME: Duration = Duration::from_mins(5);

/// Lifetime of a stream token. It is part of URLs, which proxies may log. No token that comes from an API token lives
/// longer.
const STREAM_LIFETIME: Duration = LONGEST_EXCHANGED_LIFETIME;

pub(crate) struct TokenService {
    pub(crate) db: PgPool,
    pub(crate) login: PasswordLogin,
    pub(crate) keys: Keys,
    pub(crate) revocations: Revocations,
}

/// Checks that a login names an account and has a password.
fn check_login(login: &LoginInput) -> Result<(), Fault> {
    let mut check = Check::default();
    for (field, text) in [("Email", &login.email), ("Password", &login.password)] {
        if text.is_empty() {
            check.refuse(field, "is required");
        }
    }
    check.done()
}

#[tonic::async_trait]
impl token_service_server::TokenService for TokenService {
    async fn login(&self, request: Request<LoginRequest>) -> Result<Response<Token>, Status> {
        let address = client_address(&request);
        let LoginRequest { login, host } = request.into_inner();
        let login = login.unwrap_or_default();
        check_login(&login)?;
        let subdomain = rules::subdomain(&host, self.login.config.base_domain.as_deref());
        let attempt = Attempt::new(&login.email, subdomain, address);
        let token = self.login.log_in(&attempt, login.password.into()).await?;
        Ok(Response::new(Token { token }))
    }

    async fn refine(&self, request: Request<RefineRequest>) -> Result<Response<Token>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;
        if caller.api_token.is_some() {
            return Err(Fault::Forbidden(
                "API tokens are valid for one customer only; log in with a password".to_owned(),
            )
            .into());
        }
        let customer = CustomerId::from_field("CustomerId", &request.get_ref().customer_id)?;

        let mut issuance = self.revocations.begin(&caller).await?;
        let issued_at = issuance.date_token().await?;
        let session = caller.session.unwrap_or_else(Session::start);
        let remaining = session.remaining(self.login.config.session_lifetime);
        if remaining.is_zero() {
            return Err(Fault::Unauthenticated.into());
        }
        let membership = membership_for(issuance.tx(), &caller, customer).await?;
        let permissions = membership.permissions()?;
        let grant = Grant::new(customer, membership.id, &membership.display_name, permissions);
        let token = self.keys.issue(Grant {
            issued_at: Some(issued_at),
            session: Some(session),
            lifetime: Some(remaining),
            ..grant
        })?;
        let actor = Actor { customer, user: membership.id, address: caller.address };
        audit::record(issuance.tx(), actor, Entry::new("TokenRefined")).await?;
        issuance.commit().await?;
        Ok(Response::new(Token { token }))
    }

    async fn logout(&self, request: Request<()>) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        if caller.api_token.is_some() {
            let reason = "an API token has no session; to revoke it, log in with a password and send \
                          DELETE /api/users/current/tokens/{apiTokenId}";
            return Err(Fault::Forbidden(reason.to_owned()).into());
        }
        let mut tx = begin(&self.db).await?;
        audit::record(&mut tx, &caller, Entry::new("LoggedOut")).await?;
        match caller.session {
            Some(session) => {
                revocation::record_of_session(&mut tx, caller.user, session.id).await?;
            }
            // Tokens of earlier versions do not have a session.
            None => revocation::record(&mut tx, Scope::of_user(caller.user)).await?,
        }
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.notify();
        Ok(Response::new(()))
    }

    async fn create_stream_token(
        &self,
        request: Request<()>,
    ) -> Result<Response<StreamToken>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;

        let mut issuance = self.revocations.begin(&caller).await?;
        let issued_at = issuance.date_token().await?;
        let remaining = self.remaining(issuance.tx(), &caller).await?;
        let lifetime = remaining.min(STREAM_LIFETIME);
        let permissions = Permissions::from_iter([Permission::Read]).both(caller.permissions);
        let token = self.keys.issue(Grant {
            api_token: caller.api_token,
            session: caller.session,
            issued_at: Some(issued_at),
            lifetime: Some(lifetime),
            is_for_streams: true,
            ..Grant::new(caller.customer, caller.user, &caller.name, permissions)
        })?;
        issuance.commit().await?;
        let expiry_date_time = Some(Timestamp(issued_at.0 + lifetime));
        Ok(Response::new(StreamToken { token, expiry_date_time }))
    }

    async fn list_keys(&self, _: Request<()>) -> Result<Response<KeySet>, Status> {
        Ok(Response::new(KeySet { jwks: self.keys.public()? }))
    }

    async fn exchange_api_token(
        &self,
        request: Request<ExchangeApiTokenRequest>,
    ) -> Result<Response<Token>, Status> {
        let hash = hash_of_secret(&request.get_ref().secret);
        // Guesses of strangers take no lock.
        api_token::store::find(&self.db, &hash).await?.ok_or(Fault::Unauthenticated)?;
        let mut tx = begin(&self.db).await?;
        let issued_at = revocation::date_token(&mut tx).await?;
        let api_token = api_token::store::find(&mut *tx, &hash).await?;
        let api_token = api_token.ok_or(Fault::Unauthenticated)?;
        let (customer, user) = (api_token.customer_id, api_token.user_id);
        let membership = membership::store::find(&mut *tx, customer, user).await?;
        let membership = membership.filter(Membership::may_log_in).ok_or(Fault::Unauthenticated)?;
        let permissions = user_group::permissions(&api_token.usage_permission)?;
        let permissions = permissions.both(membership.permissions()?);
        if permissions.is_empty() {
            return Err(Fault::Unauthenticated.into());
        }
        let token = self.keys.issue(Grant {
            api_token: Some(api_token.id),
            issued_at: Some(issued_at),
            lifetime: Some(api_token.remaining().min(EXCHANGED_LIFETIME)),
            ..Grant::new(customer, user, &membership.display_name, permissions)
        })?;
        api_token::store::record_use(&mut tx, customer, api_token.id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(Token { token }))
    }

    async fn list_revocations(
        &self,
        request: Request<ListRevocationsRequest>,
    ) -> Result<Response<ListRevocationsReply>, Status> {
        let items = revocation::list(&self.db, request.get_ref().after).await?;
        let expired_until =
            if items.is_empty() { 0 } else { revocation::expired_until(&self.db).await? };
        Ok(Response::new(ListRevocationsReply { items, expired_until }))
    }
}

impl TokenService {
    /// Returns how long a caller has access at most: until the end of the session, or until the API token
    /// expires.
    async fn remaining(
        &self,
        tx: &mut PgTransaction<'_>,
        caller: &Caller,
    ) -> Result<Duration, Fault> {
        let remaining = match (caller.api_token, caller.session) {
            (Some(id), _) => api_token::store::remaining(tx, caller.customer, id).await?,
            (None, Some(session)) => session.remaining(self.login.config.session_lifetime),
            // Tokens of earlier versions do not have a session.
            (None, None) => STREAM_LIFETIME,
        };
        if remaining.is_zero() { Err(Fault::Unauthenticated) } else { Ok(remaining) }
    }
}

/// Finds the membership that grants the caller access to a customer: that of the account in the
/// customer, or one with the permission to manage customers. The permissions in the caller's token
/// may be outdated and are ignored.
async fn membership_for(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    customer: CustomerId,
) -> Result<Membership, Fault> {
    let home = membership::store::of_user(&mut **tx, caller.user).await?;
    let home = home.filter(|home| home.membership.may_log_in()).ok_or(Fault::Unauthenticated)?;
    let own = membership::store::of_account(&mut **tx, home.account_id).await?;
    let own = own.into_iter().find(|one| one.customer_id == customer);
    if let Some(own) = own.filter(Membership::may_log_in) {
        membership::store::record_use(tx, customer, own.id).await?;
        return Ok(own);
    }
    if !home.membership.may_visit() {
        return Err(Fault::Forbidden("the account does not belong to this customer".to_owned()));
    }
    if !customer::store::is_active(&mut **tx, customer).await? {
        return Err(Fault::invalid("CustomerId", "no such customer"));
    }
    Ok(home.membership)
}
