//! `TokenService`: how a user proves who they are.

mod login;
pub(crate) mod rules;

use std::time::Duration;

use assay_auth::{Caller, Grant, Session, Verifier, client_address};
use assay_proto::{
    CustomerId, Fault,
    identity::{
        ExchangeApiTokenRequest, KeySet, ListRevocationsRequest, LoginRequest, RefineRequest,
        RevocationList, Token, token_service_server,
    },
};
use assay_runtime::begin;
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use self::login::Attempt;
pub(crate) use self::login::{LoginLimits, throttled};
use crate::{
    api_token,
    audit::{self, Actor, Entry},
    customer,
    membership::{self, Membership},
    password::Passwords,
    revocation::{self, Revocations, Scope},
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
    pub(crate) session_lifetime: Duration,
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
        let customer = CustomerId::from_field("CustomerId", &request.get_ref().customer_id)?;

        let mut tx = begin(&self.db).await?;
        let issued_at = revocation::date_token(&mut tx).await?;
        self.confirm(&mut tx, &request).await?;
        let session = caller.session.unwrap_or_else(Session::start);
        let rest = session.rest(self.session_lifetime);
        if rest.is_zero() {
            return Err(Fault::Unauthenticated.into());
        }
        let access = access(&mut tx, &caller, customer).await?;
        let grant = Grant::new(customer, access.id, &access.display_name, access.permissions()?);
        let token = self.keys.issue(Grant {
            issued_at: Some(issued_at),
            session: Some(session),
            lifetime: Some(rest),
            ..grant
        })?;
        let actor = Actor { customer, user: access.id, address: caller.address };
        audit::record(&mut tx, actor, Entry::new("TokenRefined")).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(Token { token }))
    }

    async fn logout(&self, request: Request<()>) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        if caller.api_token.is_some() {
            let reason = "an API token has no session; delete the API token instead";
            return Err(Fault::Forbidden(reason.to_owned()).into());
        }
        let mut tx = begin(&self.db).await?;
        audit::record(&mut tx, &caller, Entry::new("LoggedOut")).await?;
        match caller.session {
            Some(session) => {
                revocation::record_of_session(&mut tx, caller.user, session.id).await?;
            }
            // A token from before there were sessions.
            None => revocation::record(&mut tx, Scope::of_user(caller.user)).await?,
        }
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.committed();
        Ok(Response::new(()))
    }

    async fn list_keys(&self, _: Request<()>) -> Result<Response<KeySet>, Status> {
        Ok(Response::new(KeySet { jwks: self.keys.public()? }))
    }

    async fn exchange_api_token(
        &self,
        request: Request<ExchangeApiTokenRequest>,
    ) -> Result<Response<Token>, Status> {
        let hash = api_token::rules::hash(&request.get_ref().secret);
        let mut tx = begin(&self.db).await?;
        let issued_at = revocation::date_token(&mut tx).await?;
        let found = api_token::store::find(&mut *tx, &hash).await?.ok_or(Fault::Unauthenticated)?;
        let own = membership::store::find(&mut *tx, found.customer_id, found.user_id).await?;
        let own = own.filter(Membership::may_log_in).ok_or(Fault::Unauthenticated)?;
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
            ..Grant::new(found.customer_id, found.user_id, name, permissions)
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

/// The membership by which the caller works for a customer: the account's own one, or that of a
/// visitor who manages customers at home. What the caller's token says of that is not believed.
async fn access(
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
    if !customer::store::is_open(&mut **tx, customer).await? {
        return Err(Fault::invalid("CustomerId", "must be the id of a customer"));
    }
    Ok(home.membership)
}
