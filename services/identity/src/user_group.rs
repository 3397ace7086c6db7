//! `UserGroupService`: user groups, which define the permissions of their members.

pub(crate) mod rules;
pub(crate) mod store;

use assay_auth::{Caller, UnconfirmedCaller};
use assay_database::begin;
use assay_proto::{
    Fault, Permissions, UserGroupId,
    identity::{
        CreateUserGroupRequest, DeleteUserGroupRequest, UpdateUserGroupRequest, UserGroup,
        UserGroupInput, user_group_service_server,
    },
};
use assay_records::{Action, Change, difference};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{
    membership,
    record::Record,
    revocation::{self, Revocations},
};

pub(crate) struct UserGroupService {
    pub(crate) db: PgPool,
    pub(crate) revocations: Revocations,
}

#[tonic::async_trait]
impl user_group_service_server::UserGroupService for UserGroupService {
    async fn create_user_group(
        &self,
        request: Request<CreateUserGroupRequest>,
    ) -> Result<Response<UserGroup>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;
        let input = rules::valid(request.into_inner().user_group.unwrap_or_default())?;
        rules::check_may_grant(
            &caller,
            permissions(&input.usage_permission)?,
            Permissions::default(),
        )?;
        let id = UserGroupId::new();

        let mut issuance = self.revocations.begin(&caller).await?;
        let tx = issuance.tx();
        let group = store::insert(tx, caller.customer, id, &input).await?;
        store::check_number(tx, caller.customer).await?;
        let record = Record::UserGroup(caller.customer, id);
        record.record_change(tx, Action::Created, &caller, None).await?;
        issuance.commit().await?;
        Ok(Response::new(group))
    }

    async fn update_user_group(
        &self,
        request: Request<UpdateUserGroupRequest>,
    ) -> Result<Response<UserGroup>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;
        let UpdateUserGroupRequest { id, data_version, changes, fields } = request.into_inner();
        let id = UserGroupId::from_path(&id)?;
        let change = Change { data_version, changes, fields };

        let mut issuance = self.revocations.begin(&caller).await?;
        let tx = issuance.tx();
        membership::store::lock_managers(tx, caller.customer).await?;
        let current = store::lock(tx, caller.customer, id).await?;
        let version = current.data_version.clone().unwrap_or_default();
        let input = rules::valid(change.apply("user group", &current, &version)?)?;
        let before = permissions(&current.usage_permission)?;
        let after = permissions(&input.usage_permission)?;
        rules::check_may_grant(&caller, after, before)?;

        let managed = membership::store::has_manager(&mut **tx, caller.customer).await?;
        let group = store::update(tx, caller.customer, id, &input).await?;
        let length = |text: Option<&String>| text.map_or(0, String::len);
        if length(group.description.as_ref()) > length(current.description.as_ref()) {
            store::check_number(tx, caller.customer).await?;
        }
        membership::store::require_manager(tx, caller.customer, managed).await?;
        let details = difference::<UserGroupInput>(&current, &group)?;
        let record = Record::UserGroup(caller.customer, id);
        record.record_change(tx, Action::Changed, &caller, Some(details)).await?;
        let mut tx = issuance.lock_revocations().await?;
        if before != after {
            revocation::record_of_group(&mut tx, caller.customer, id).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.notify();
        Ok(Response::new(group))
    }

    async fn delete_user_group(
        &self,
        request: Request<DeleteUserGroupRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        let id = UserGroupId::from_path(&request.get_ref().id)?;

        let mut tx = begin(&self.db).await?;
        membership::store::lock_managers(&mut tx, caller.customer).await?;
        let group = store::lock(&mut tx, caller.customer, id).await?;
        store::delete(&mut tx, caller.customer, id).await?;
        let record = Record::UserGroup(caller.customer, id);
        record.record_change(&mut tx, Action::Deleted, &caller, Some(group.name)).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

/// Parses the stored permissions of a group.
pub(crate) fn permissions(text: &str) -> Result<Permissions, Fault> {
    Permissions::parse("UsagePermission", text).map_err(Fault::internal)
}
