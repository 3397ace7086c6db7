//! `UserService`: accounts as the customers see them that they belong to.

mod rules;
mod store;

use assay_auth::{Caller, client_address};
use assay_proto::{
    Fault, Permission, Permissions, UserGroupId, UserId,
    identity::{
        CreateUserRequest, DeleteUserRequest, ListUsersRequest, PreparePasswordResetRequest,
        ResetPasswordRequest, UpdateUserRequest, User, UserBatch, UserInput, user_service_server,
    },
};
use assay_records::{Action, Change, difference};
use assay_runtime::list::{self, Batches};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use self::rules::Valid;
use crate::{
    account, customer,
    mail::{Mail, Mails},
    membership,
    password_link::{self, PasswordLinks},
    record::Record,
    revocation::{self, Revocations, Scope},
    user_group,
};

pub(crate) struct UserService {
    pub(crate) db: PgPool,
    pub(crate) revocations: Revocations,
    pub(crate) mails: Mails,
    pub(crate) links: PasswordLinks,
}

#[tonic::async_trait]
impl user_service_server::UserService for UserService {
    type ListUsersStream = Batches<UserBatch>;

    async fn get_current_user(&self, request: Request<()>) -> Result<Response<User>, Status> {
        let caller = Caller::of(&request)?;
        match store::get(&self.db, caller.customer, caller.user).await {
            Err(Fault::NotFound(_)) => {}
            found => return Ok(Response::new(found?)),
        }
        // Who manages customers can be a visitor.
        let email = account::store::email(&self.db, caller.user).await?;
        Ok(Response::new(rules::visitor(&caller, email)))
    }

    async fn list_users(
        &self,
        request: Request<ListUsersRequest>,
    ) -> Result<Response<Self::ListUsersStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ListUsersRequest { user_group_id, page } = request.into_inner();
        let group = UserGroupId::named(&user_group_id)?;
        user_group::store::find(&self.db, customer, group)
            .await?
            .ok_or(Fault::NotFound("user group"))?;
        let db = self.db.clone();
        list::answer(page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, group, &slice).await }
        })
        .await
    }

    async fn create_user(
        &self,
        request: Request<CreateUserRequest>,
    ) -> Result<Response<User>, Status> {
        let caller = Caller::of(&request)?;
        let input = rules::valid(request.into_inner().user.unwrap_or_default())?;

        let mut tx = self.db.begin().await.map_err(Fault::from)?;
        customer::store::hold(&mut tx, caller.customer).await?;
        may_join(&mut tx, &caller, input.group).await?;
        let (id, has_password) = account::store::insert_or_hold(&mut tx, &input.email).await?;
        let name = &input.display_name;
        membership::store::insert(&mut tx, caller.customer, id, input.group, name).await?;
        let user = store::get(&mut *tx, caller.customer, id).await?;
        let record = Record::User(caller.customer, input.group, id);
        record.was(&mut tx, Action::Created, &caller, None).await?;
        if !has_password {
            Mail::invitation(&user.email, caller.customer).enqueue(&mut tx).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        self.mails.committed();
        Ok(Response::new(user))
    }

    async fn update_user(
        &self,
        request: Request<UpdateUserRequest>,
    ) -> Result<Response<User>, Status> {
        let caller = Caller::of(&request)?;
        let UpdateUserRequest { id, data_version, changes, fields } = request.into_inner();
        let id = UserId::named(&id)?;
        let change = Change { data_version, changes, fields };

        let mut tx = self.db.begin().await.map_err(Fault::from)?;
        customer::store::lock_managers(&mut tx, caller.customer).await?;
        store::lock(&mut tx, caller.customer, id).await?;
        let current = store::get(&mut *tx, caller.customer, id).await?;
        let input = rules::valid(change.of("user", &current, &current.data_version)?)?;
        let user = update(&mut tx, &caller, id, &current, &input).await?;
        let details = difference::<UserInput>(&current, &user)?;
        let record = Record::User(caller.customer, input.group, id);
        record.was(&mut tx, Action::Changed, &caller, Some(details)).await?;
        if rules::group(&current) != Some(input.group) {
            revoke(&mut tx, &caller, id, &current).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.committed();
        self.mails.committed();
        Ok(Response::new(user))
    }

    async fn delete_user(
        &self,
        request: Request<DeleteUserRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        let id = UserId::named(&request.get_ref().id)?;

        let mut tx = self.db.begin().await.map_err(Fault::from)?;
        customer::store::lock_managers(&mut tx, caller.customer).await?;
        store::lock(&mut tx, caller.customer, id).await?;
        let user = store::get(&mut *tx, caller.customer, id).await?;
        let managed = membership::store::has_manager(&mut *tx, caller.customer).await?;
        let group = rules::group(&user).ok_or_else(|| Fault::internal("a user has no group"))?;
        let record = Record::User(caller.customer, group, id);
        record.was(&mut tx, Action::Deleted, &caller, Some(user.email.clone())).await?;
        account::store::lock(&mut tx, id).await?;
        membership::store::delete(&mut tx, caller.customer, id).await?;
        membership::store::keep_manager(&mut tx, caller.customer, managed).await?;
        account::store::delete_if_unused(&mut tx, id).await?;
        revoke(&mut tx, &caller, id, &user).await?;
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.committed();
        Ok(Response::new(()))
    }

    async fn prepare_password_reset(
        &self,
        request: Request<PreparePasswordResetRequest>,
    ) -> Result<Response<()>, Status> {
        let address = client_address(&request);
        let reset = request.into_inner().reset.unwrap_or_default();
        self.links.prepare(&reset.user_email, &reset.host, address).await?;
        Ok(Response::new(()))
    }

    async fn reset_password(
        &self,
        request: Request<ResetPasswordRequest>,
    ) -> Result<Response<()>, Status> {
        let address = client_address(&request);
        let reset = request.into_inner().reset.unwrap_or_default();
        self.links.reset(&reset.token, reset.new_password.into(), address).await?;
        self.revocations.committed();
        Ok(Response::new(()))
    }
}

/// Makes of a locked user what the input says.
async fn update(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    id: UserId,
    current: &User,
    input: &Valid,
) -> Result<User, Fault> {
    if input.email != current.email {
        rules::may_rename(caller, current)?;
        account::store::lock(tx, id).await?;
        if membership::store::count(&mut **tx, id).await? > 1 {
            return Err(rules::shared_email());
        }
        account::store::set_email(tx, id, &input.email).await?;
        password_link::forget(tx, id).await?;
        if !account::store::has_password(&mut **tx, id).await? {
            Mail::invitation(&input.email, caller.customer).enqueue(tx).await?;
        }
    }
    if rules::group(current) != Some(input.group) {
        may_join(tx, caller, input.group).await?;
    }
    let managed = membership::store::has_manager(&mut **tx, caller.customer).await?;
    store::update(tx, caller.customer, id, input.group, &input.display_name).await?;
    membership::store::keep_manager(tx, caller.customer, managed).await?;
    store::get(&mut **tx, caller.customer, id).await
}

/// Makes sure that there is such a group, which the caller may put users into.
async fn may_join(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    group: UserGroupId,
) -> Result<(), Fault> {
    let found = user_group::store::hold(tx, caller.customer, group).await?;
    let found = found.ok_or_else(rules::unknown_group)?;
    let permissions = user_group::permissions(&found.usage_permission)?;
    user_group::rules::may_grant(caller, permissions, Permissions::default())
}

/// Kills the tokens of a user: of those who could manage customers, in all of them.
async fn revoke(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    id: UserId,
    user: &User,
) -> Result<(), Fault> {
    let permissions = user_group::permissions(&user.usage_permission)?;
    let everywhere = permissions.contains(Permission::CustomerManagement);
    let customer = (!everywhere).then_some(caller.customer);
    revocation::record(tx, Scope { customer, ..Scope::of_account(id) }).await
}
