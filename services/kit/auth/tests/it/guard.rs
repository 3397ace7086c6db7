//! Fairness between customers that call a service, and callers of methods that create credentials.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use assay_auth::{Caller, UnconfirmedCaller, Verifier, guard};
use assay_fair::Shares;
use assay_proto::{
    Batch as _, DESCRIPTORS, Page,
    identity::{
        ApiToken, ApiTokenBatch, CreateApiTokenRequest, DeleteApiTokenRequest,
        DeleteUserApiTokenRequest, ListApiTokensRequest, ListUserApiTokensRequest, NewApiToken,
        Revocation,
        api_token_service_client::ApiTokenServiceClient,
        api_token_service_server::{ApiTokenService, ApiTokenServiceServer},
    },
};
use assay_rpc::{
    grpc::{self, Channel},
    list::Batches,
};
use assay_runtime::Runtime;
use assay_testkit::eventually;
use futures::{StreamExt as _, stream};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};
use tonic::{Code, Request, Response, Status, service::Routes};

use crate::world::{Identity, grant, issuer};

/// A service whose calls block until the test releases them, as with a slow database.
#[derive(Clone)]
struct Work {
    started: Arc<AtomicUsize>,
    finish: Arc<Semaphore>,
    /// Whether it is a part of identity.
    is_of_issuer: bool,
}

impl Work {
    fn new(is_of_issuer: bool) -> Self {
        Self { started: Arc::default(), finish: Arc::new(Semaphore::new(0)), is_of_issuer }
    }

    /// Starts the service.
    async fn serve(&self, verifier: Verifier) -> Result<(Runtime, ApiTokenServiceClient<Channel>)> {
        let runtime = Runtime::new("program");
        let services = Routes::new(ApiTokenServiceServer::new(self.clone()));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let app = guard(services, verifier, &Shares::new(8));
        let address = grpc::serve(&runtime, listener, app, DESCRIPTORS)?;
        Ok((runtime, ApiTokenServiceClient::new(grpc::connect(&format!("http://{address}"))?)))
    }

    async fn block(&self) {
        self.started.fetch_add(1, Ordering::AcqRel);
        self.finish.acquire().await.unwrap().forget();
    }

    /// Waits until `count` calls have started.
    async fn started(&self, count: usize) {
        let reached = || async { (self.started.load(Ordering::Acquire) >= count).then_some(()) };
        eventually("the calls have started", reached).await;
    }
}

#[tonic::async_trait]
impl ApiTokenService for Work {
    type ListApiTokensStream = Batches<ApiTokenBatch>;
    type ListUserApiTokensStream = Batches<ApiTokenBatch>;

    /// Returns an endless list that blocks before each message. The limit of the request is the
    /// length of a message.
    async fn list_api_tokens(
        &self,
        request: Request<ListApiTokensRequest>,
    ) -> Result<Response<Self::ListApiTokensStream>, Status> {
        let work = self.clone();
        let limit = request.into_inner().page.and_then(|page| page.limit);
        let length = limit.map_or(64 << 10, |limit| usize::try_from(limit).unwrap());
        let batches = stream::repeat(()).then(move |()| {
            let work = work.clone();
            async move {
                work.block().await;
                let token = ApiToken { name: "x".repeat(length), ..ApiToken::default() };
                Ok(ApiTokenBatch::render(&[token], None)?)
            }
        });
        Ok(Response::new(batches.boxed()))
    }

    async fn list_user_api_tokens(
        &self,
        _: Request<ListUserApiTokensRequest>,
    ) -> Result<Response<Self::ListUserApiTokensStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn delete_user_api_token(
        &self,
        _: Request<DeleteUserApiTokenRequest>,
    ) -> Result<Response<()>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn create_api_token(
        &self,
        request: Request<CreateApiTokenRequest>,
    ) -> Result<Response<NewApiToken>, Status> {
        let (caller, unconfirmed) = (Caller::of(&request), UnconfirmedCaller::of(&request));
        assert_ne!(caller.is_ok(), unconfirmed.is_ok());
        assert_eq!(unconfirmed.is_ok(), self.is_of_issuer, "identity confirms its caller itself");
        self.block().await;
        Ok(Response::new(NewApiToken::default()))
    }

    /// Returns immediately.
    async fn delete_api_token(
        &self,
        request: Request<DeleteApiTokenRequest>,
    ) -> Result<Response<()>, Status> {
        Caller::of(&request)?;
        assert!(UnconfirmedCaller::of(&request).is_err(), "only methods with assay.issues do");
        Ok(Response::new(()))
    }
}

struct World {
    _runtime: Runtime,
    work: Work,
    client: ApiTokenServiceClient<Channel>,
    greedy: Caller,
    other: Caller,
}

impl World {
    /// Starts a service with eight shares, and users of two customers.
    async fn start() -> Result<Self> {
        let issuer = issuer()?;
        let verifier = Verifier::of_issuer();
        verifier.set_keys(&issuer.jwks()?)?;
        let greedy = verifier.verify(&issuer.issue(grant())?).await?;
        let other = verifier.verify(&issuer.issue(grant())?).await?;
        let work = Work::new(true);
        let (runtime, client) = work.serve(verifier).await?;
        Ok(Self { _runtime: runtime, work, client, greedy, other })
    }

    /// Calls a method that does not block.
    async fn quick(&self, caller: &Caller) -> Result<(), Status> {
        let mut client = self.client.clone();
        client.delete_api_token(caller.call(DeleteApiTokenRequest::default())).await.map(drop)
    }
}

/// Other methods learn of the revocation within seconds.
#[tokio::test]
async fn a_token_that_was_revoked_a_moment_ago_creates_no_credentials() -> Result<()> {
    let identity = Identity::start().await?;
    let (_program, verifier) = identity.ready_program().await?;
    let work = Work::new(false);
    work.finish.add_permits(Semaphore::MAX_PERMITS / 2);
    let (_runtime, mut client) = work.serve(verifier.clone()).await?;
    for _ in 0..20 {
        let user = grant();
        let caller = verifier.verify(&identity.issuer.issue(user)?).await?;
        client.create_api_token(caller.call(CreateApiTokenRequest::default())).await?;
        let user_id = Some(user.user.to_string());
        identity.revoke(Revocation { user_id, ..Revocation::default() });
        let refused = client.create_api_token(caller.call(CreateApiTokenRequest::default())).await;
        assert_eq!(refused.unwrap_err().code(), Code::Unauthenticated);
    }
    Ok(())
}

#[tokio::test]
async fn slow_calls_of_one_customer_do_not_delay_another() -> Result<()> {
    let world = World::start().await?;
    let mut slow = JoinSet::new();
    for _ in 0..50 {
        let (mut client, caller) = (world.client.clone(), world.greedy.clone());
        slow.spawn(async move {
            client.create_api_token(caller.call(CreateApiTokenRequest::default())).await
        });
    }
    world.work.started(6).await;
    world.quick(&world.other).await?;
    assert_eq!(world.work.started.load(Ordering::Acquire), 6, "one customer holds six of eight");

    world.work.finish.add_permits(slow.len());
    for call in slow.join_all().await {
        call?;
    }
    world.quick(&world.greedy).await?;
    Ok(())
}

#[tokio::test]
async fn slow_lists_of_one_customer_do_not_delay_another() -> Result<()> {
    let world = World::start().await?;
    let mut lists = JoinSet::new();
    for _ in 0..20 {
        let (mut client, caller) = (world.client.clone(), world.greedy.clone());
        lists.spawn(async move {
            let list = client.list_api_tokens(caller.call(ListApiTokensRequest::default()));
            list.await?.into_inner().message().await
        });
    }
    world.work.started(6).await;
    world.quick(&world.other).await?;
    assert_eq!(world.work.started.load(Ordering::Acquire), 6, "one customer holds six of eight");

    world.work.finish.add_permits(Semaphore::MAX_PERMITS / 2);
    for list in lists.join_all().await {
        assert!(list?.is_some());
    }
    Ok(())
}

#[tokio::test]
async fn every_message_of_a_list_is_produced_with_a_share() -> Result<()> {
    let world = World::start().await?;
    let mut lists = JoinSet::new();
    for _ in 0..20 {
        let (mut client, caller) = (world.client.clone(), world.greedy.clone());
        lists.spawn(async move {
            let page = Some(Page { limit: Some(10), ..Page::default() });
            let list = client.list_api_tokens(caller.call(ListApiTokensRequest { page }));
            let mut list = list.await?.into_inner();
            while list.message().await?.is_some() {}
            Ok::<_, Status>(())
        });
    }
    world.work.started(6).await;
    for finished in 1..=40 {
        world.work.finish.add_permits(1);
        world.work.started(6 + finished).await;
        world.quick(&world.other).await?;
        let running = world.work.started.load(Ordering::Acquire) - finished;
        assert_eq!(running, 6, "one customer holds six of eight");
    }
    Ok(())
}

#[tokio::test]
async fn a_list_without_a_reader_holds_no_share() -> Result<()> {
    let world = World::start().await?;
    // The client buffers messages until its flow-control windows are full.
    world.work.finish.add_permits(Semaphore::MAX_PERMITS / 2);
    let mut lists = Vec::new();
    for _ in 0..20 {
        let mut client = world.client.clone();
        let list = client.list_api_tokens(world.greedy.call(ListApiTokensRequest::default()));
        lists.push(list.await?.into_inner());
    }
    world.work.started(20).await;
    world.quick(&world.greedy).await?;
    world.quick(&world.other).await?;
    Ok(())
}
