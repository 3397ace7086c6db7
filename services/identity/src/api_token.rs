//! `ApiTokenService`: API tokens, by which machines authenticate.

pub(crate) mod rules;
pub(crate) mod store;

use std::time::Duration;

use assay_auth::{API_TOKEN_PREFIX, Caller, UnconfirmedCaller, new_secret};
use assay_database::begin;
use assay_proto::{
    ApiTokenId, CustomerId, Fault, Page, Permissions, UserId,
    identity::{
        ApiTokenBatch, CreateApiTokenRequest, DeleteApiTokenRequest, DeleteUserApiTokenRequest,
        ListApiTokensRequest, ListUserApiTokensRequest, NewApiToken, api_token_service_server,
    },
};
use assay_rpc::list::{self, Batches};
use secrecy::ExposeSecret;
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{
    audit::{self, Entry},
    membership,
    revocation::{self, Revocations, Scope},
    throttle::{self, Limit, Subject},
    user_group,
};

/// Limit of API tokens that a user creates. Each one that is deleted leaves a revocation in every program that verifies
/// tokens, for about an hour.
const OF_USER: Limit = Limit { burst: 100, every: Duration::from_mins(1) };

pub(crate) struct ApiTokenService {
    pub(crate) db: PgPool,
    pub(crate) revocations: Revocations,
}

#[tonic::async_trait]
impl api_token_service_server::ApiTokenService for ApiTokenService {
    type ListApiTokensStream = Batches<ApiTokenBatch>;
    type ListUserApiTokensStream = Batches<ApiTokenBatch>;

    async fn list_api_tokens(
        &self,
        request: Request<ListApiTokensRequest>,
    ) -> Result<Response<Self::ListApiTokensStream>, Status> {
        let caller = Caller::of(&request)?;
        self.list(caller.customer, caller.user, request.into_inner().page).await
    }

    async fn list_user_api_tokens(
        &self,
        request: Request<ListUserApiTokensRequest>,
    ) -> Result<Response<Self::ListUserApiTokensStream>, Status> {
        let caller = Caller::of(&request)?;
        let ListUserApiTokensRequest { user_id, page } = request.into_inner();
        let user = UserId::from_path(&user_id)?;
        membership::store::account(&self.db, caller.customer, user).await?;
        self.list(caller.customer, user, page).await
    }

    async fn create_api_token(
        &self,
        request: Request<CreateApiTokenRequest>,
    ) -> Result<Response<NewApiToken>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;
        rules::reject_api_tokens(&caller)?;
        let input = request.into_inner().api_token.unwrap_or_default();
        let input = rules::valid(&self.db, input).await?;
        let permissions = user_group::permissions(&input.usage_permission)?;
        user_group::rules::check_may_grant(&caller, permissions, Permissions::default())?;
        let (secret, hash) = new_secret(API_TOKEN_PREFIX)?;
        let id = ApiTokenId::new();
        let subject = Subject::of_user("API token", caller.user);

        let mut issuance = self.revocations.begin(&caller).await?;
        let tx = issuance.tx();
        // The counter stays locked, so that concurrent creations do not exceed the number of API tokens together.
        let counted = throttle::count(&mut **tx, &subject, OF_USER).await;
        counted.map_err(throttle::because("you have created too many API tokens"))?;
        let token = store::insert(tx, caller.customer, id, caller.user, &input, &hash).await?;
        store::check_number(tx, caller.customer, caller.user).await?;
        let entry = Entry::new("ApiTokenCreated").target("ApiToken", id);
        let details = format!("{}: {}", token.name, token.usage_permission);
        audit::record(tx, &*caller, entry.details(Some(details))).await?;
        issuance.commit().await?;
        let secret = secret.expose_secret().to_owned();
        Ok(Response::new(NewApiToken { secret, ..token }))
    }

    async fn delete_api_token(
        &self,
        request: Request<DeleteApiTokenRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        rules::reject_api_tokens(&caller)?;
        let id = ApiTokenId::from_path(&request.get_ref().id)?;
        self.delete(&caller, caller.user, id).await
    }

    async fn delete_user_api_token(
        &self,
        request: Request<DeleteUserApiTokenRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        let DeleteUserApiTokenRequest { user_id, id } = request.get_ref();
        self.delete(&caller, UserId::from_path(user_id)?, ApiTokenId::from_path(id)?).await
    }
}

impl ApiTokenService {
    async fn list(
        &self,
        customer: CustomerId,
        user: UserId,
        page: Option<Page>,
    ) -> Result<Response<Batches<ApiTokenBatch>>, Status> {
        let db = self.db.clone();
        list::answer(page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, user, &slice).await }
        })
        .await
    }

    /// Deletes and revokes an API token of a user of the caller's customer.
    async fn delete(
        &self,
        caller: &Caller,
        user: UserId,
        id: ApiTokenId,
    ) -> Result<Response<()>, Status> {
        let customer = caller.customer;
        let mut tx = begin(&self.db).await?;
        let entry = Entry::new("ApiTokenDeleted").target("ApiToken", id);
        audit::record(&mut tx, caller, entry).await?;
        revocation::record(&mut tx, Scope::of_api_token(customer, user, id)).await?;
        store::delete(&mut tx, customer, id, user).await?;
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.notify();
        Ok(Response::new(()))
    }
}
