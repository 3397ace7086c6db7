//! `CustomerService`: customers, which own projects and users.

pub(crate) mod purge;
pub(crate) mod rules;
pub(crate) mod store;

use std::sync::Arc;

use assay_auth::{Caller, UnconfirmedCaller};
use assay_database::begin;
use assay_events::{Event, EventType, publish};
use assay_proto::{
    CustomerId, Fault, UserGroupId,
    events::AppliancesChanged,
    identity::{
        CreateCustomerRequest, Customer, CustomerBatch, CustomerEntry, CustomerInput,
        DeleteCustomerRequest, DeletedCustomers, FindDeletedCustomersRequest, GetCustomerRequest,
        ListCustomersRequest, UpdateCustomerRequest, UserGroup, UserGroupInput,
        customer_service_server,
    },
};
use assay_records::{Action, Change, appliances, difference};
use assay_rpc::list::{self, Batches};
use sqlx::{PgPool, PgTransaction};
use tokio::sync::Notify;
use tonic::{Request, Response, Status};

use crate::{
    membership,
    record::Record,
    revocation::{self, Revocations},
    user_group,
};

pub(crate) struct CustomerService {
    pub(crate) db: PgPool,
    pub(crate) revocations: Revocations,
    /// Wakes the purge after a customer was deleted.
    pub(crate) deletions: Arc<Notify>,
}

/// Maximum number of customers in a question.
const MOST_CUSTOMERS: usize = 1000;

#[tonic::async_trait]
impl customer_service_server::CustomerService for CustomerService {
    type ListCustomersStream = Batches<CustomerBatch>;

    async fn find_deleted_customers(
        &self,
        request: Request<FindDeletedCustomersRequest>,
    ) -> Result<Response<DeletedCustomers>, Status> {
        let ids = request.into_inner().ids;
        if ids.len() > MOST_CUSTOMERS {
            let problem = format!("must have at most {MOST_CUSTOMERS} elements");
            return Err(Fault::invalid("ids", problem).into());
        }
        let ids: Result<Vec<_>, Fault> =
            ids.iter().map(|id| CustomerId::from_field("ids", id)).collect();
        let deleted = store::deleted(&self.db, &ids?).await?;
        let ids = deleted.iter().map(ToString::to_string).collect();
        Ok(Response::new(DeletedCustomers { ids }))
    }

    async fn get_current_customer(
        &self,
        request: Request<()>,
    ) -> Result<Response<Customer>, Status> {
        let caller = Caller::of(&request)?;
        Ok(Response::new(store::get(&self.db, caller.customer).await?))
    }

    async fn list_customers(
        &self,
        request: Request<ListCustomersRequest>,
    ) -> Result<Response<Self::ListCustomersStream>, Status> {
        let ListCustomersRequest { archived, page } = request.into_inner();
        let db = self.db.clone();
        list::answer(page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, archived, &slice).await }
        })
        .await
    }

    async fn get_customer(
        &self,
        request: Request<GetCustomerRequest>,
    ) -> Result<Response<Customer>, Status> {
        let id = CustomerId::from_path(&request.get_ref().id)?;
        Ok(Response::new(store::get(&self.db, id).await?))
    }

    async fn create_customer(
        &self,
        request: Request<CreateCustomerRequest>,
    ) -> Result<Response<CustomerEntry>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;
        let input = rules::valid(request.into_inner().customer.unwrap_or_default())?;
        let id = CustomerId::new();

        let mut issuance = self.revocations.begin(&caller).await?;
        let tx = issuance.tx();
        let customer = store::insert(tx, id, &input).await?;
        publish_appliances(tx, id, "", customer.appliances.as_deref(), &customer.data_version)
            .await?;
        create_groups(tx, id, false).await?;
        Record::Customer(id).record_change(tx, Action::Created, &caller, None).await?;
        issuance.commit().await?;
        Ok(Response::new(customer))
    }

    async fn update_customer(
        &self,
        request: Request<UpdateCustomerRequest>,
    ) -> Result<Response<Customer>, Status> {
        let caller = UnconfirmedCaller::of(&request)?;
        let UpdateCustomerRequest { id, data_version, changes, fields } = request.into_inner();
        let id = CustomerId::from_path(&id)?;
        let change = Change { data_version, changes, fields };

        let mut issuance = self.revocations.begin(&caller).await?;
        let tx = issuance.tx();
        let current = store::lock(tx, id).await?;
        let input = change.apply("customer", &current, &current.data_version)?;
        let input = rules::valid_change(&current, input)?;
        let action = Action::of_change(current.archived, input.archived);
        if action == Action::Archived {
            store::reject_operator(&mut **tx, id).await?;
        }
        let customer = store::update(tx, id, &input).await?;
        let details = difference::<CustomerInput>(&current, &customer)?;
        let before = current.appliances.as_deref().unwrap_or_default();
        let (after, version) = (customer.appliances.as_deref(), &customer.data_version);
        publish_appliances(tx, id, before, after, version).await?;
        Record::Customer(id).record_change(tx, action, &caller, Some(details)).await?;
        let mut tx = issuance.lock_revocations().await?;
        if action == Action::Archived {
            revocation::record_of_customer(&mut tx, id).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.notify();
        Ok(Response::new(customer))
    }

    async fn delete_customer(
        &self,
        request: Request<DeleteCustomerRequest>,
    ) -> Result<Response<()>, Status> {
        let mut caller = Caller::of(&request)?;
        let id = CustomerId::from_path(&request.get_ref().id)?;

        let mut tx = begin(&self.db).await?;
        let customer = store::lock(&mut tx, id).await?;
        store::reject_operator(&mut *tx, id).await?;
        store::delete(&mut tx, id).await?;
        // The audit log of the deleted customer is purged, so the entry goes to the caller's own
        // customer.
        let home = membership::store::of_user(&mut *tx, caller.user).await?;
        caller.customer = home.map_or(caller.customer, |home| home.membership.customer_id);
        Record::Customer(id)
            .record_change(&mut tx, Action::Deleted, &caller, Some(customer.name))
            .await?;
        revocation::record_of_customer(&mut tx, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        self.revocations.notify();
        self.deletions.notify_one();
        Ok(Response::new(()))
    }
}

/// Publishes the target groups that a customer may use. Each change of a customer with target groups repeats them, so
/// that it repairs services that have missed them.
async fn publish_appliances(
    tx: &mut PgTransaction<'_>,
    id: CustomerId,
    before: &str,
    after: Option<&str>,
    data_version: &str,
) -> Result<(), Fault> {
    let target_groups = appliances::parse(after.unwrap_or_default());
    if target_groups.is_empty() && appliances::parse(before).is_empty() {
        return Ok(());
    }
    let revision = data_version.parse().map_err(Fault::internal)?;
    let changed = AppliancesChanged { target_groups, revision };
    publish(tx, &Event::new(id, id, EventType::AppliancesSet, &changed)?).await
}

/// Creates the user groups of a new customer.
pub(crate) async fn create_groups(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    is_operator: bool,
) -> Result<Vec<UserGroup>, Fault> {
    let mut groups = Vec::new();
    for (name, permissions) in user_group::rules::first_groups(is_operator) {
        let (name, usage_permission) = (name.to_owned(), permissions.to_string());
        let input = UserGroupInput { name, usage_permission, ..UserGroupInput::default() };
        let group = user_group::store::insert(tx, customer, UserGroupId::new(), &input).await?;
        groups.push(group);
    }
    Ok(groups)
}
