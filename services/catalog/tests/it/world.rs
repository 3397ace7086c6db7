//! A catalog for each test, and helpers to read its answers.

use std::{path::PathBuf, time::Duration};

use assay_auth::{Seal, SealConfig, guard, new_seal_key};
use assay_catalog::{FileConfig, Files, Openings};
use assay_fair::Shares;
use assay_proto::{
    Batch, DESCRIPTORS, Page,
    catalog::{Snapshot, SnapshotTarget, TakeSnapshotRequest, TestSet},
};
use assay_rpc::grpc::{self, Channel};
use assay_runtime::Runtime;
use assay_storage::FileStoreConfig;
use assay_testkit::{TestDatabase, TestKeys, TestUser, test_dir};
use secrecy::SecretString;
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio::net::TcpListener;
use tonic::{Response, Status, Streaming};
use tonic_types::StatusExt;
use uuid::Uuid;

use crate::user::User;

pub(crate) type Answer<T> = Result<T, Status>;

/// A catalog, without the other services.
pub(crate) struct World {
    pub(crate) db: PgPool,
    pub(crate) database_url: String,
    keys: TestKeys,
    channel: Channel,
    /// The folder with the bytes of files.
    pub(crate) folder: PathBuf,
    pub(crate) files: Files,
    /// The program whose tasks and uploads end together.
    pub(crate) runtime: Runtime,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(new_seal_key("test").unwrap()).await
    }

    /// Starts a catalog with these encryption keys.
    pub(crate) async fn start_with(encryption_keys: SecretString) -> Self {
        Self::start_with_all(encryption_keys, FileConfig::default(), None).await
    }

    /// Starts a catalog with these limits: the size of a file in MiB, and of the files of a customer in GiB.
    pub(crate) async fn start_with_files(largest_file_mib: u32, files_gib: u32) -> Self {
        let (limits, largest) = (FileConfig { files_gib }, Some(largest_file_mib));
        Self::start_with_all(new_seal_key("test").unwrap(), limits, largest).await
    }

    async fn start_with_all(
        encryption_keys: SecretString,
        limits: FileConfig,
        largest_file_mib: Option<u32>,
    ) -> Self {
        let database = TestDatabase::create("catalog", &assay_catalog::migrations()).await.unwrap();
        let (options, database_url) = (database.options, database.url);
        let db = PgPoolOptions::new().max_connections(8).connect_with(options).await.unwrap();
        let keys = TestKeys::generate();
        let folder = test_dir().unwrap().join(Uuid::now_v7().to_string());
        let mut store = FileStoreConfig::folder(&folder);
        store.largest_file_mib = largest_file_mib.unwrap_or(store.largest_file_mib);
        let runtime = Runtime::new("catalog");
        let files = Files::open(&runtime, &db, &store, limits).unwrap();
        let channel = serve(&runtime, &db, &keys, encryption_keys, &files).await;
        Self { db, database_url, keys, channel, folder, files, runtime }
    }

    /// Restarts the catalog with other encryption keys.
    pub(crate) async fn restarted_with(self, encryption_keys: SecretString) -> Self {
        let runtime = Runtime::new("catalog");
        let channel = serve(&runtime, &self.db, &self.keys, encryption_keys, &self.files).await;
        Self { channel, ..self }
    }

    /// The same user, connected to this catalog.
    pub(crate) fn reconnected(&self, user: &User) -> User {
        User { channel: self.channel.clone(), ..user.clone() }
    }

    /// A user of a new customer, with all permissions except reading secrets.
    pub(crate) async fn user(&self) -> User {
        self.with_channel(self.keys.user("Read, Write, Execute").await)
    }

    /// A colleague of a user.
    pub(crate) async fn colleague(&self, user: &User, permissions: &str) -> User {
        self.with_channel(self.keys.user_of(user.identity.customer, permissions).await)
    }

    /// A user who authenticates with an API token.
    pub(crate) async fn with_api_token(&self, user: &User) -> User {
        self.with_channel(self.keys.with_api_token(&user.identity).await)
    }

    fn with_channel(&self, identity: TestUser) -> User {
        User { identity, channel: self.channel.clone() }
    }

    /// Published events in order: noun, action and data.
    pub(crate) async fn events(&self) -> Vec<(String, String, serde_json::Value)> {
        sqlx::query_as("select noun, action, data::jsonb from outbox order by id")
            .fetch_all(&self.db)
            .await
            .unwrap()
    }
}

/// Interval in which openings are written.
const OPENINGS_INTERVAL: Duration = Duration::from_millis(20);

async fn serve(
    runtime: &Runtime,
    db: &PgPool,
    keys: &TestKeys,
    encryption_keys: SecretString,
    files: &Files,
) -> Channel {
    let openings = Openings::start(runtime, db.clone(), OPENINGS_INTERVAL);
    let seal = Seal::new(&SealConfig { encryption_keys }).unwrap();
    let shares = Shares::new(8);
    let services = assay_catalog::services(db, &shares, seal, openings, files.clone());
    let app = guard(services, keys.verifier(), &shares);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = grpc::serve(runtime, listener, app, DESCRIPTORS).unwrap();
    grpc::connect(&format!("http://{address}")).unwrap()
}

/// Joins the messages of a streamed test set.
pub(crate) async fn collect_set(mut parts: Streaming<TestSet>) -> Answer<TestSet> {
    let mut set = parts.message().await?.expect("the stream has a first message");
    while let Some(mut part) = parts.message().await? {
        set.test_cases.append(&mut part.test_cases);
        assert_eq!(part, TestSet::default(), "only the first message has other fields");
    }
    Ok(set)
}

/// The test set as the target of a snapshot.
pub(crate) fn target(set: &TestSet) -> SnapshotTarget {
    SnapshotTarget {
        project_id: set.project_id.clone(),
        test_set_id: set.id.clone(),
        ..SnapshotTarget::default()
    }
}

pub(crate) async fn take_snapshot(
    user: &User,
    target: SnapshotTarget,
    skip_not_ready: bool,
) -> Answer<Snapshot> {
    let request = user.call(TakeSnapshotRequest { target: Some(target), skip_not_ready });
    collect_snapshot(user.snapshots().take_snapshot(request).await?.into_inner()).await
}

/// Joins the messages of a streamed snapshot.
pub(crate) async fn collect_snapshot(mut parts: Streaming<Snapshot>) -> Answer<Snapshot> {
    let mut snapshot = parts.message().await?.expect("the stream has a first message");
    while let Some(mut part) = parts.message().await? {
        snapshot.test_cases.append(&mut part.test_cases);
        assert_eq!(part, Snapshot::default(), "only the first message has other fields");
    }
    Ok(snapshot)
}

/// Joins the messages of a streamed list; returns the items and the cursor of the next page.
pub(crate) async fn listed<B: Batch>(
    answer: Answer<Response<Streaming<B>>>,
) -> Answer<(Vec<B::Item>, Option<String>)> {
    let mut batches = answer?.into_inner();
    let (mut all, mut next) = (Vec::new(), None);
    while let Some(batch) = batches.message().await? {
        let (items, cursor) = batch.into_parts();
        all.append(&mut B::rendered(items, None).parse()?);
        next = cursor;
    }
    Ok((all, next))
}

/// A page with this limit.
pub(crate) fn page(limit: i32, cursor: Option<String>) -> Page {
    Page { limit: Some(limit), cursor, q: None }
}

/// The code of the error.
#[track_caller]
pub(crate) fn fault<T: std::fmt::Debug>(answer: Answer<T>) -> String {
    let status = answer.expect_err("the request should fail");
    status.get_details_error_info().expect("the status has an error code").reason
}

/// The fields that a request was rejected for, sorted.
#[track_caller]
pub(crate) fn invalid_fields<T: std::fmt::Debug>(answer: Answer<T>) -> Vec<String> {
    let status = answer.expect_err("the request should be rejected");
    let details = status.get_details_bad_request().unwrap_or_else(|| panic!("{status:?}"));
    let mut fields: Vec<_> = details.field_violations.into_iter().map(|v| v.field).collect();
    fields.sort();
    fields
}
