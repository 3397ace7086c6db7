//! `AuditService`: who did what, when, and from where. An entry is written in the transaction of
//! what it tells of.

mod store;

use std::{fmt::Display, net::IpAddr};

use assay_auth::Caller;
use assay_proto::{
    CustomerId, Fault, UserId,
    identity::{AuditEntryBatch, ListAuditEntriesRequest, audit_service_server},
};
use assay_runtime::list::{self, Batches};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

pub(crate) use self::store::{prune, record_of_account, record_refused_login};

/// Who does something, and from where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor {
    pub(crate) customer: CustomerId,
    pub(crate) user: UserId,
    pub(crate) address: Option<IpAddr>,
}

impl From<&Caller> for Actor {
    fn from(caller: &Caller) -> Self {
        Self { customer: caller.customer, user: caller.user, address: caller.address }
    }
}

/// What was done.
pub(crate) struct Entry {
    action: String,
    target: Option<(String, String)>,
    details: Option<String>,
}

impl Entry {
    pub(crate) fn new(action: &str) -> Self {
        Self { action: action.to_owned(), target: None, details: None }
    }

    /// The record that it was done to.
    pub(crate) fn of(self, target: &str, id: impl Display) -> Self {
        Self { target: Some((target.to_owned(), id.to_string())), ..self }
    }

    /// What was changed, without secrets.
    pub(crate) fn with(self, details: Option<String>) -> Self {
        Self { details, ..self }
    }
}

/// Writes down what a user did, in the customer that they work for.
pub(crate) async fn record(
    tx: &mut PgTransaction<'_>,
    actor: impl Into<Actor>,
    entry: Entry,
) -> Result<(), Fault> {
    store::insert(tx, &actor.into(), &entry).await
}

pub(crate) struct AuditService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl audit_service_server::AuditService for AuditService {
    type ListAuditEntriesStream = Batches<AuditEntryBatch>;

    async fn list_audit_entries(
        &self,
        request: Request<ListAuditEntriesRequest>,
    ) -> Result<Response<Self::ListAuditEntriesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let filter = store::Filter {
            from: request.from,
            to: request.to,
            user: UserId::from_field_if_any("userId", request.user_id.as_deref())?,
            action: request.action,
        };
        let db = self.db.clone();
        list::answer(request.page, move |slice| {
            let (db, filter) = (db.clone(), filter.clone());
            async move { store::list(&db, customer, &filter, &slice).await }
        })
        .await
    }
}
