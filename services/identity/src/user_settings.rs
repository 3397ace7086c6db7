//! `UserSettingsService`: settings of users, separate for each of their customers.

mod store;

use assay_auth::Caller;
use assay_database::begin;
use assay_proto::{
    CustomerId, Fault, UserId,
    identity::{
        UpdateUserSettingsRequest, UserSettings, UserSettingsInput, user_settings_service_server,
    },
};
use assay_records::{Change, difference};
use sqlx::{PgConnection, PgPool};
use tonic::{Request, Response, Status};

use crate::{
    audit::{self, Entry},
    membership,
};

pub(crate) struct UserSettingsService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl user_settings_service_server::UserSettingsService for UserSettingsService {
    async fn get_user_settings(
        &self,
        request: Request<()>,
    ) -> Result<Response<UserSettings>, Status> {
        let caller = Caller::of(&request)?;
        let mut db = self.db.acquire().await.map_err(Fault::from)?;
        Ok(Response::new(store::get(&mut db, caller.customer, caller.user).await?))
    }

    async fn update_user_settings(
        &self,
        request: Request<UpdateUserSettingsRequest>,
    ) -> Result<Response<UserSettings>, Status> {
        let caller = Caller::of(&request)?;
        let UpdateUserSettingsRequest { data_version, changes, fields } = request.into_inner();
        let change = Change { data_version, changes, fields };

        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, caller.customer, caller.user).await?;
        let input = change.apply("user settings", &current, &current.data_version)?;
        let settings = store::put(&mut tx, caller.customer, caller.user, &input).await?;
        let details = difference::<UserSettingsInput>(&current, &settings)?;
        let entry = Entry::new("UserSettingsChanged").target("User", caller.user);
        audit::record(&mut tx, &caller, entry.details(Some(details))).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(settings))
    }
}

/// Returns whether a user has enabled mails about the end of executions, and may read executions.
pub(crate) async fn wants_mail(
    db: &mut PgConnection,
    customer: CustomerId,
    user: UserId,
) -> Result<bool, Fault> {
    match store::get(&mut *db, customer, user).await {
        Ok(settings) if settings.mail_when_execution_ends => {
            let membership = membership::store::find(db, customer, user).await?;
            Ok(membership.is_some_and(|membership| membership.may_read()))
        }
        Ok(_) | Err(Fault::NotFound(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}
