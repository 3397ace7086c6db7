//! `UserService`: users of customers, their memberships, invitations and password resets.

mod address;
mod rules;
mod store;

use assay_auth::{Caller, UnconfirmedCaller, client_address};
use assay_database::begin;
use assay_proto::{
    Fault, Permissions, UserGroupId, UserId,
    identity::{
        AcceptInvitationRequest, AcceptMembershipRequest, CreateUserRequest, DeleteUserRequest,
        ListMembershipsRequest, ListUsersRequest, MembershipBatch, PreparePasswordResetRequest,
        ResetPasswordRequest, UpdateUserRequest, User, UserBatch, UserInput, user_service_server,
    },
};
use assay_records::{Action, Change, difference};
use assay_rpc::list::{self, Batches};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use crate::{
    account, customer,
    invitation::{self, Invitations},
    mail::MailNotifier,
    membership,
    password_link::PasswordLinks,
    record::Record,
    revocation::{self, Revocations, Scope},
    user_group,
};

pub(crate) struct UserService {
    pub(crate) db: PgPool,
    pub(crate) revocations: Revocations,
    pub(crate) mails: MailNotifier,
    pub(crate) links: PasswordLinks,
    pub(crate) invitations: Invitations,
}

#[tonic::async_trait]
impl user_service_server::UserService for UserService {
    type ListUsersStream = Batches<UserBatch>;
    type ListMembershipsStream = Batches<MembershipBatch>;

    async fn get_current_user(&self, request: Request<()>) -> Result<Response<User>, Status> {
        let caller = Caller::of(&request)?;
        match store::get(&self.db, caller.customer, caller.user).await {
            Err(Fault::NotFound(_)) => {}
            found => return Ok(Response::new(found?)),
        }
        // The caller may work for a customer without a membership.
        let (_, email) = account::store::of_user(&self.db, caller.user).await?;
        Ok(Response::new(rules::visitor(&caller, email)))
    }

    async fn list_users(
        &self,
        request: Request<ListUsersRequest>,
    ) -> Result<Response<Self::ListUsersStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ListUsersRequest { user_group_id, page } = request.into_inner();
        let group = UserGroupId::from_path(&user_group_id)?;
        user_group::store::find(&self.db, customer, group).await?;
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
        let caller = UnconfirmedCaller::of(&request)?;
        let (input, group) = rules::valid(request.into_inner().user.unwrap_or_default())?;
        let id = UserId::new();

        let mut issuance = self.revocations.begin(&caller).await?;
        let tx = issuance.tx();
        customer::store::lock_shared(tx, caller.customer).await?;
        check_group(tx, &caller, group).await?;
        invitation::store::check_available(&mut **tx, caller.customer, &input.email).await?;
        membership::store::insert(tx, caller.customer, id, None, group, &input).await?;
        let requester = Some(caller.user);
        invitation::store::replace(tx, caller.customer, id, &input.email, requester).await?;
        let user = store::get(&mut **tx, caller.customer, id).await?;
        let record = Record::User(caller.customer, group, id);
        record.record_change(tx, Action::Created, &caller, None).await?;
        self.invitations.send(tx, caller.customer, id, &input.email).await?;
        issuance.commit().await?;
        self.mails.notify();
        Ok(Response::new(user))
    }

    async fn update_user(
        &self,
        request: Request<UpdateUserRequest>,
    ) -> Result<Response<User>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;
        let UpdateUserRequest { id, data_version, changes, fields } = request.into_inner();
        let id = UserId::from_path(&id)?;
        let names_email = fields.iter().any(|field| field.eq_ignore_ascii_case("Email"));
        let change = Change { data_version, changes, fields };

        let mut issuance = self.revocations.begin(&caller).await?;
        let tx = issuance.tx();
        membership::store::lock_managers(tx, caller.customer).await?;
        store::lock(tx, caller.customer, id).await?;
        let current = store::get(&mut **tx, caller.customer, id).await?;
        let input = change.apply("user", &current, &current.data_version)?;
        let (input, group) = rules::valid(input)?;
        if names_email {
            address::change(self.invitations, tx, &caller, &current, &input.email).await?;
        }
        let user = update(tx, &caller, &current, group, &input).await?;
        let details = difference::<UserInput>(&current, &user)?;
        let record = Record::User(caller.customer, group, id);
        record.record_change(tx, Action::Changed, &caller, Some(details)).await?;
        let mut tx = issuance.lock_revocations().await?;
        if rules::group(&current) != Some(group) {
            revocation::record(&mut tx, Scope::of_user(id)).await?;
        }
        if user.display_name != current.display_name {
            revocation::record_name(&mut tx, id, &user.display_name).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.notify();
        self.mails.notify();
        Ok(Response::new(user))
    }

    async fn delete_user(
        &self,
        request: Request<DeleteUserRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        let id = UserId::from_path(&request.get_ref().id)?;

        let mut tx = begin(&self.db).await?;
        membership::store::lock_managers(&mut tx, caller.customer).await?;
        store::lock(&mut tx, caller.customer, id).await?;
        let user = store::get(&mut *tx, caller.customer, id).await?;
        let managed = membership::store::has_manager(&mut *tx, caller.customer).await?;
        let group = rules::group(&user).ok_or_else(|| Fault::internal("a user has no group"))?;
        let record = Record::User(caller.customer, group, id);
        record.record_change(&mut tx, Action::Deleted, &caller, Some(user.email.clone())).await?;
        let account = membership::store::account(&mut *tx, caller.customer, id).await?;
        if let Some(account) = account {
            account::store::lock(&mut tx, account).await?;
        }
        membership::store::delete(&mut tx, caller.customer, id).await?;
        membership::store::require_manager(&mut tx, caller.customer, managed).await?;
        if let Some(account) = account {
            account::store::delete_if_unused(&mut tx, account).await?;
        }
        revocation::record(&mut tx, Scope::of_user(id)).await?;
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.notify();
        Ok(Response::new(()))
    }

    async fn prepare_password_reset(
        &self,
        request: Request<PreparePasswordResetRequest>,
    ) -> Result<Response<()>, Status> {
        let address = client_address(&request);
        let reset = request.into_inner().reset.unwrap_or_default();
        self.links.request_reset(&reset.user_email, &reset.host, address).await?;
        Ok(Response::new(()))
    }

    async fn reset_password(
        &self,
        request: Request<ResetPasswordRequest>,
    ) -> Result<Response<()>, Status> {
        let address = client_address(&request);
        let reset = request.into_inner().reset.unwrap_or_default();
        self.links.reset(&reset.token, reset.new_password.into(), address).await?;
        self.revocations.notify();
        Ok(Response::new(()))
    }

    async fn accept_invitation(
        &self,
        request: Request<AcceptInvitationRequest>,
    ) -> Result<Response<()>, Status> {
        let address = client_address(&request);
        let invitation = request.into_inner().invitation.unwrap_or_default();
        self.links.accept(&invitation.token, address).await?;
        self.revocations.notify();
        Ok(Response::new(()))
    }

    async fn list_memberships(
        &self,
        request: Request<ListMembershipsRequest>,
    ) -> Result<Response<Self::ListMembershipsStream>, Status> {
        let caller = Caller::of(&request)?;
        let (account, _) = account::store::of_user(&self.db, caller.user).await?;
        let db = self.db.clone();
        list::answer(request.into_inner().page, move |slice| {
            let (db, caller) = (db.clone(), caller.clone());
            async move { membership::list::list(&db, &caller, account, &slice).await }
        })
        .await
    }

    async fn accept_membership(
        &self,
        request: Request<AcceptMembershipRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;
        rules::reject_api_tokens(&caller)?;
        let id = UserId::from_path(&request.get_ref().id)?;
        let unknown = || Fault::NotFound("invitation");

        let mut issuance = self.revocations.begin(&caller).await?;
        let tx = issuance.tx();
        let (account, _) = account::store::of_user(&mut **tx, caller.user).await?;
        let customer = invitation::store::of_account(&mut **tx, account, id).await?;
        let customer = customer.ok_or_else(unknown)?;
        let invitation = invitation::consume(tx, customer, id).await?;
        let invitation = invitation.ok_or_else(unknown)?;
        // The address may belong to another account by now.
        let owner = account::store::lock_shared(tx, &invitation.email).await?;
        let account = owner.filter(|owner| *owner == account).ok_or_else(unknown)?;
        let before = invitation::accept(tx, &invitation, account, caller.address).await?;
        let mut tx = issuance.lock_revocations().await?;
        invitation::revoke_previous(&mut tx, &invitation, before).await?;
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.notify();
        Ok(Response::new(()))
    }
}

/// Writes the changes of a locked user, except for the email address.
async fn update(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    current: &User,
    group: UserGroupId,
    input: &UserInput,
) -> Result<User, Fault> {
    let id = UserId::from_path(&current.id)?;
    if rules::group(current) != Some(group) {
        check_group(tx, caller, group).await?;
    }
    let managed = membership::store::has_manager(&mut **tx, caller.customer).await?;
    store::update(tx, caller.customer, id, group, input).await?;
    membership::store::require_manager(tx, caller.customer, managed).await?;
    store::get(&mut **tx, caller.customer, id).await
}

/// Checks that a group exists and that the caller may add users to it.
async fn check_group(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    group: UserGroupId,
) -> Result<(), Fault> {
    let found = user_group::store::lock_shared(tx, caller.customer, group).await?;
    let found = found.ok_or_else(rules::unknown_group)?;
    let permissions = user_group::permissions(&found.usage_permission)?;
    user_group::rules::check_may_grant(caller, permissions, Permissions::default())
}
