//! `TokenService`: how a user proves who they are.

mod rules;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, Fault, Permission,
    identity::{KeySet, LoginRequest, RefineRequest, Token, token_service_server},
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{account, customer, membership, password::Passwords, signing_key::Keys};

pub(crate) struct TokenService {
    pub(crate) db: PgPool,
    pub(crate) passwords: Passwords,
    pub(crate) keys: Keys,
    pub(crate) base_domain: Option<String>,
}

#[tonic::async_trait]
impl token_service_server::TokenService for TokenService {
    async fn login(&self, request: Request<LoginRequest>) -> Result<Response<Token>, Status> {
        let request = request.into_inner();
        let login = request.login.unwrap_or_default();
        let turn = self.passwords.turn()?;

        // What is no email belongs to no account; it takes as long to find that out.
        let email = account::rules::email("Email", &login.email).unwrap_or_default();
        let account = account::store::find(&self.db, email).await?;
        let (user, hash) = account.map(|found| (found.id, found.password_hash)).unzip();
        let proven = turn.verify(login.password.into(), hash.flatten()).await?;
        let user = user.filter(|_| proven).ok_or(Fault::Unauthenticated)?;

        let memberships = membership::store::of_account(&self.db, user).await?;
        let subdomain = rules::subdomain(&request.host, self.base_domain.as_deref());
        let chosen = membership::rules::choose(memberships, subdomain.as_deref())?;
        membership::store::record_login(&self.db, chosen.customer_id, user).await?;
        let (name, permissions) = (&chosen.display_name, chosen.permissions()?);
        let token = self.keys.issue(chosen.customer_id, user, name, permissions)?;
        Ok(Response::new(Token { token }))
    }

    async fn refine(&self, request: Request<RefineRequest>) -> Result<Response<Token>, Status> {
        let caller = Caller::of(&request)?;
        let customer = CustomerId::parse("CustomerId", &request.get_ref().customer_id)?;

        let memberships = membership::store::of_account(&self.db, caller.user).await?;
        let token = match membership::rules::of_customer(memberships, customer) {
            Some(own) => {
                membership::store::record_use(&self.db, customer, caller.user).await?;
                self.keys.issue(customer, caller.user, &own.display_name, own.permissions()?)?
            }
            None => self.token_of_manager(&caller, customer).await?,
        };
        Ok(Response::new(Token { token }))
    }

    async fn list_keys(&self, _: Request<()>) -> Result<Response<KeySet>, Status> {
        Ok(Response::new(KeySet { jwks: self.keys.public()? }))
    }
}

impl TokenService {
    /// A token for a customer that the caller is no member of, with the permissions that they have.
    async fn token_of_manager(
        &self,
        caller: &Caller,
        customer: CustomerId,
    ) -> Result<String, Fault> {
        if !caller.may(Permission::CustomerManagement) {
            return Err(Fault::Forbidden(
                "the account does not belong to this customer".to_owned(),
            ));
        }
        if !customer::store::is_open(&self.db, customer).await? {
            return Err(Fault::invalid("CustomerId", "must be the id of a customer"));
        }
        self.keys.issue(customer, caller.user, &caller.name, caller.permissions)
    }
}
