//! A catalog of its own for each test, and how its answers are read.

use assay_auth::{Seal, SealConfig, guard, new_seal_key};
use assay_catalog::Openings;
use assay_proto::{
    Batch, DESCRIPTORS, Page,
    catalog::{Snapshot, TestSet},
};
use assay_runtime::{
    Runtime, Shares,
    grpc::{self, Channel},
};
use assay_testkit::{TestDatabase, TestKeys, TestUser};
use secrecy::SecretString;
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::net::TcpListener;
use tonic::{Response, Status, Streaming};
use tonic_types::StatusExt;

use crate::user::User;

pub(crate) type Answer<T> = Result<T, Status>;

/// A catalog, without the other services.
pub(crate) struct World {
    pub(crate) db: PgPool,
    pub(crate) database_url: String,
    keys: TestKeys,
    channel: Channel,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(new_seal_key("test").unwrap()).await
    }

    /// With these encryption keys.
    pub(crate) async fn start_with(encryption_keys: SecretString) -> Self {
        let database = TestDatabase::create("catalog", &assay_catalog::migrations()).await.unwrap();
        let (options, database_url) = (database.options, database.url);
        let db = PgPoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
        let keys = TestKeys::generate();
        let channel = serve(&db, &keys, encryption_keys).await;
        Self { db, database_url, keys, channel }
    }

    /// The same catalog with other encryption keys.
    pub(crate) async fn restarted_with(self, encryption_keys: SecretString) -> Self {
        let channel = serve(&self.db, &self.keys, encryption_keys).await;
        Self { channel, ..self }
    }

    /// The same user, at the catalog as it was started last.
    pub(crate) fn again(&self, user: &User) -> User {
        User { channel: self.channel.clone(), ..user.clone() }
    }

    /// A user of a new customer, who may do anything but see secrets.
    pub(crate) async fn user(&self) -> User {
        self.with_channel(self.keys.user("Read, Write, Execute").await)
    }

    /// A colleague of a user.
    pub(crate) async fn colleague(&self, user: &User, permissions: &str) -> User {
        self.with_channel(self.keys.user_of(user.who.customer, permissions).await)
    }

    fn with_channel(&self, who: TestUser) -> User {
        User { who, channel: self.channel.clone() }
    }

    /// What others were told, in order: noun, action and data.
    pub(crate) async fn told(&self) -> Vec<(String, String, serde_json::Value)> {
        sqlx::query_as("select noun, action, data::jsonb from outbox order by id")
            .fetch_all(&self.db)
            .await
            .unwrap()
    }
}

async fn serve(db: &PgPool, keys: &TestKeys, encryption_keys: SecretString) -> Channel {
    let runtime = Runtime::new("catalog");
    let openings = Openings::start(&runtime, db.clone());
    let seal = Seal::new(&SealConfig { encryption_keys }).unwrap();
    let app = guard(assay_catalog::services(db, seal, openings), keys.verifier(), &Shares::new(8));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = grpc::serve(&runtime, listener, app, DESCRIPTORS).unwrap();
    grpc::connect(&format!("http://{address}")).unwrap()
}

/// Puts the parts of a test set together.
pub(crate) async fn whole(mut parts: Streaming<TestSet>) -> Answer<TestSet> {
    let mut set = parts.message().await?.expect("a first part");
    while let Some(mut part) = parts.message().await? {
        set.test_cases.append(&mut part.test_cases);
        assert_eq!(part, TestSet::default(), "only the first part says more");
    }
    Ok(set)
}

/// Puts the parts of a snapshot together.
pub(crate) async fn whole_snapshot(mut parts: Streaming<Snapshot>) -> Answer<Snapshot> {
    let mut snapshot = parts.message().await?.expect("a first part");
    while let Some(mut part) = parts.message().await? {
        snapshot.test_cases.append(&mut part.test_cases);
        assert_eq!(part, Snapshot::default(), "only the first part says more");
    }
    Ok(snapshot)
}

/// Puts the parts of a list together, with the cursor of the next page.
pub(crate) async fn listed<B: Batch>(
    answer: Answer<Response<Streaming<B>>>,
) -> Answer<(Vec<B::Item>, Option<String>)> {
    let mut batches = answer?.into_inner();
    let (mut all, mut next) = (Vec::new(), None);
    while let Some(batch) = batches.message().await? {
        let (mut items, cursor) = batch.into_parts();
        all.append(&mut items);
        next = cursor;
    }
    Ok((all, next))
}

/// A page of that length.
pub(crate) fn page(limit: i32, cursor: Option<String>) -> Page {
    Page { limit: Some(limit), cursor, q: None }
}

/// The stable name of a fault.
#[track_caller]
pub(crate) fn fault<T: std::fmt::Debug>(answer: Answer<T>) -> String {
    let status = answer.expect_err("it should have failed");
    status.get_details_error_info().expect("a fault of ours").reason
}

/// The fields that a request was refused for, in order.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(answer: Answer<T>) -> Vec<String> {
    let status = answer.expect_err("it should have been refused");
    let details = status.get_details_bad_request().unwrap_or_else(|| panic!("{status:?}"));
    let mut fields: Vec<_> = details.field_violations.into_iter().map(|v| v.field).collect();
    fields.sort();
    fields
}
