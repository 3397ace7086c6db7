//! `TokenService`: how a user proves who they are.

mod login;
pub(crate) mod rules;

use std::time::Duration;

use assay_auth::{Caller, Grant, Verifier, client_address};
use assay_proto::{
    CustomerId, Fault, Permission, Permissions,
    identity::{
        ExchangeApiTokenRequest, KeySet, ListRevocationsRequest, LoginRequest, RefineRequest,
        RevocationList, Token, token_service_server,
    },
};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use self::login::Attempt;
pub(crate) use self::login::{LoginLimits, throttled_account};
use crate::{
    api_token,
    audit::{self, Actor, Entry},
    customer, membership,
    password::Passwords,
    revocation::{self, Revocations},
    signing_key::Keys,
    user_group,
};

/// How long a token is valid that an API token is exchanged for.
const EXCHANGED_FOR: Duration = Duration::from_mins(5);

pub(crate) struct TokenService {
    pub(crate) db: PgPool,
    pub(crate) passwords: Passwords,
    pub(crate) keys: Keys,
    pub(crate) verifier: Verifier,
    pub(crate) revocations: Revocations,
    pub(crate) base_domain: Option<String>,
    pub(crate) limits: LoginLimits,
}

#[tonic::async_trait]
impl token_service_server::TokenService for TokenService {
    async fn login(&self, request: Request<LoginRequest>) -> Result<Response<Token>, Status> {
        let address = client_address(&request);
        let LoginRequest { login, host } = request.into_inner();
        let login = login.unwrap_or_default();
        let subdomain = rules::subdomain(&host, self.base_domain.as_deref());
        let attempt = Attempt::new(&login.email, subdomain, address);
        Ok(Response::new(Token { token: self.log_in(&attempt, login.password.into()).await? }))
    }

    async fn refine(&self, request: Request<RefineRequest>) -> Result<Response<Token>, Status> {
        let caller = Caller::of(&request)?;
        if caller.api_token.is_some() {
            return Err(Fault::Forbidden("an API token is for one customer".to_owned()).into());
        }
        let customer = CustomerId::parse("CustomerId", &request.get_ref().customer_id)?;

        let mut tx = self.db.begin().await.map_err(Fault::from)?;
        let issued_at = revocation::date_token(&mut tx).await?;
        self.confirm(&mut tx, &request).await?;
        let (name, permissions) = access(&mut tx, &caller, customer).await?;
        let grant = Grant::new(customer, caller.user, &name, permissions);
        let token = self.keys.issue(Grant { issued_at: Some(issued_at), ..grant })?;
        let visitor = Actor { customer, ..Actor::from(&caller) };
        audit::record(&mut tx, visitor, Entry::new("TokenRefined")).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(Token { token }))
    }

    async fn list_keys(&self, _: Request<()>) -> Result<Response<KeySet>, Status> {
        Ok(Response::new(KeySet { jwks: self.keys.public()? }))
    }

    async fn exchange_api_token(
        &self,
        request: Request<ExchangeApiTokenRequest>,
    ) -> Result<Response<Token>, Status> {
        let hash = api_token::rules::hash(&request.get_ref().secret);
        let mut tx = self.db.begin().await.map_err(Fault::from)?;
        let issued_at = revocation::date_token(&mut tx).await?;
        let found = api_token::store::find(&mut *tx, &hash).await?.ok_or(Fault::Unauthenticated)?;
        let own = membership::store::find(&mut *tx, found.customer_id, found.account_id).await?;
        let own = own.filter(membership::Membership::may_log_in).ok_or(Fault::Unauthenticated)?;
        let permissions = user_group::permissions(&found.usage_permission)?;
        let permissions = permissions.both(own.permissions()?);
        if permissions.is_empty() {
            return Err(Fault::Unauthenticated.into());
        }
        let name = &own.display_name;
        let token = self.keys.issue(Grant {
            api_token: Some(found.id),
            issued_at: Some(issued_at),
            lifetime: Some(found.rest().min(EXCHANGED_FOR)),
            ..Grant::new(found.customer_id, found.account_id, name, permissions)
        })?;
        api_token::store::record_use(&mut tx, found.customer_id, found.id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(Token { token }))
    }

    async fn list_revocations(
        &self,
        request: Request<ListRevocationsRequest>,
    ) -> Result<Response<RevocationList>, Status> {
        let items = revocation::list(&self.db, request.get_ref().after).await?;
        Ok(Response::new(RevocationList { items }))
    }
}

impl TokenService {
    /// Makes sure that the caller's token is valid by all that is committed, of which the guard may
    /// not know yet: otherwise a token that was revoked could be exchanged for a new one.
    async fn confirm<T>(
        &self,
        tx: &mut PgTransaction<'_>,
        request: &Request<T>,
    ) -> Result<(), Fault> {
        self.revocations.catch_up(tx).await?;
        let token = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer "));
        self.verifier.verify(token.ok_or(Fault::Unauthenticated)?).await.map(drop)
    }
}

/// By what name and with which permissions the caller works for a customer: as its member, or as
/// one who manages customers, with the permissions that they have.
async fn access(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    customer: CustomerId,
) -> Result<(String, Permissions), Fault> {
    let own = membership::store::find(&mut **tx, customer, caller.user).await?;
    if let Some(own) = own.filter(membership::Membership::may_log_in) {
        membership::store::record_use(tx, customer, caller.user).await?;
        let permissions = own.permissions()?;
        return Ok((own.display_name, permissions));
    }
    if !caller.may(Permission::CustomerManagement) {
        return Err(Fault::Forbidden("the account does not belong to this customer".to_owned()));
    }
    if !customer::store::is_open(&mut **tx, customer).await? {
        return Err(Fault::invalid("CustomerId", "must be the id of a customer"));
    }
    Ok((caller.name.to_string(), caller.permissions))
}
