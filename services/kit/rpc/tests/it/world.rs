//! A program that counts its calls, and clients of it.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use assay_proto::{
    DESCRIPTORS,
    identity::{
        UpdateUserSettingsRequest, UserSettings,
        user_settings_service_client::UserSettingsServiceClient,
        user_settings_service_server::{UserSettingsService, UserSettingsServiceServer},
    },
};
use assay_rpc::grpc::{self, Channel};
use assay_runtime::{Runtime, Tls};
use tokio::{
    net::TcpListener,
    sync::watch,
    time::{Instant, timeout},
};
use tonic::{Request, Response, Status, TimeoutExpired, async_trait, service::Routes};

/// How a program handles calls.
#[derive(Clone, Copy, Default, PartialEq)]
pub(crate) enum Conduct {
    #[default]
    Answers,
    /// Fails with `unavailable`.
    Refuses,
    /// Fails because the deadline has passed.
    GivesUp,
    /// Does not respond until the test sets something else.
    Works,
}

/// The calls that a program has received.
#[derive(Default)]
pub(crate) struct Calls {
    pub(crate) reads: AtomicUsize,
    pub(crate) writes: AtomicUsize,
    /// Number of calls without a response.
    pub(crate) open: AtomicUsize,
    /// Address of the client that the last call stated.
    pub(crate) client: Mutex<Option<String>>,
    /// Remote address of the connection of the last call.
    pub(crate) remote: Mutex<Option<SocketAddr>>,
}

impl Calls {
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

struct Settings {
    name: &'static str,
    calls: Arc<Calls>,
    conduct: watch::Receiver<Conduct>,
}

/// Counts an open call until it is dropped.
struct Open(Arc<Calls>);

impl Open {
    fn new(calls: &Arc<Calls>) -> Self {
        calls.open.fetch_add(1, Ordering::SeqCst);
        Self(calls.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Settings {
    async fn answer(&self, client: Option<String>) -> Result<Response<UserSettings>, Status> {
        let _open = Open::new(&self.calls);
        *self.calls.client.lock().unwrap() = client;
        let mut conduct = self.conduct.clone();
        let set = conduct.wait_for(|conduct| *conduct != Conduct::Works).await;
        match set.map(|conduct| *conduct) {
            Ok(Conduct::Refuses) => Err(Status::unavailable("not now")),
            Ok(Conduct::GivesUp) => Err(Status::from_error(TimeoutExpired(()).into())),
            _ => {
                let data_version = self.name.to_owned();
                Ok(Response::new(UserSettings { data_version, ..UserSettings::default() }))
            }
        }
    }
}

/// Returns the forwarded address of the client of a call.
fn client<T>(request: &Request<T>) -> Option<String> {
    Some(request.metadata().get(grpc::CLIENT_ADDRESS)?.to_str().ok()?.to_owned())
}

#[async_trait]
impl UserSettingsService for Settings {
    async fn get_user_settings(
        &self,
        request: Request<()>,
    ) -> Result<Response<UserSettings>, Status> {
        self.calls.reads.fetch_add(1, Ordering::SeqCst);
        *self.calls.remote.lock().unwrap() = request.remote_addr();
        self.answer(client(&request)).await
    }

    async fn update_user_settings(
        &self,
        request: Request<UpdateUserSettingsRequest>,
    ) -> Result<Response<UserSettings>, Status> {
        self.calls.writes.fetch_add(1, Ordering::SeqCst);
        self.answer(client(&request)).await
    }
}

/// A serving program.
pub(crate) struct Program {
    pub(crate) address: SocketAddr,
    pub(crate) calls: Arc<Calls>,
    pub(crate) conduct: watch::Sender<Conduct>,
    pub(crate) runtime: Runtime,
}

impl Program {
    pub(crate) async fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_at(name, listener)
    }

    pub(crate) fn start_at(name: &'static str, listener: TcpListener) -> Self {
        Self::start_with(Runtime::new(name), listener)
    }

    pub(crate) fn start_with(runtime: Runtime, listener: TcpListener) -> Self {
        let name = runtime.name();
        let (conduct, calls) = (watch::Sender::default(), Arc::default());
        let settings = Settings { name, calls: Arc::clone(&calls), conduct: conduct.subscribe() };
        let routes = Routes::new(UserSettingsServiceServer::new(settings)).into_axum_router();
        let address = grpc::serve(&runtime, listener, routes, DESCRIPTORS).unwrap();
        Self { address, calls, conduct, runtime }
    }
}

/// A client of the programs.
#[derive(Clone)]
pub(crate) struct Client(UserSettingsServiceClient<Channel>);

impl Client {
    pub(crate) fn of(address: SocketAddr) -> Self {
        let channel = grpc::connect(&format!("http://{address}")).unwrap();
        Self(UserSettingsServiceClient::new(channel))
    }

    pub(crate) fn with_tls(tls: &Tls, url: &str) -> Self {
        Self::from(&Runtime::with_tls("client", Some(tls.clone())), url)
    }

    /// Creates a client that is part of a program.
    pub(crate) fn from(runtime: &Runtime, url: &str) -> Self {
        Self(UserSettingsServiceClient::new(grpc::connect_from(runtime, url).unwrap()))
    }

    /// Creates a client of the replicas behind one name.
    pub(crate) fn of_all(addresses: &watch::Sender<Vec<SocketAddr>>) -> Self {
        let addresses = addresses.subscribe();
        let channel = Channel::resolved_by("settings:50051".parse().unwrap(), move || {
            let found = addresses.borrow().clone();
            async { io::Result::Ok(found) }
        });
        Self(UserSettingsServiceClient::new(channel))
    }

    /// Reads on behalf of a client with this address.
    pub(crate) async fn read_for(&self, address: &str) -> Result<(), Status> {
        let mut request = Request::new(());
        request.set_timeout(Duration::from_secs(15));
        request.metadata_mut().insert(grpc::CLIENT_ADDRESS, address.parse().unwrap());
        self.0.clone().get_user_settings(request).await.map(drop)
    }

    /// Reads, and returns the name of the program that responded.
    pub(crate) async fn read(&self) -> Result<String, Status> {
        self.read_within(Duration::from_secs(15)).await
    }

    pub(crate) async fn read_within(&self, timeout: Duration) -> Result<String, Status> {
        let mut request = Request::new(());
        request.set_timeout(timeout);
        let answer = self.0.clone().get_user_settings(request).await?;
        Ok(answer.into_inner().data_version)
    }

    /// Writes, and returns the name of the program that responded.
    pub(crate) async fn write(&self) -> Result<String, Status> {
        let mut request = Request::new(UpdateUserSettingsRequest::default());
        request.set_timeout(Duration::from_secs(15));
        let answer = self.0.clone().update_user_settings(request).await?;
        Ok(answer.into_inner().data_version)
    }
}

/// Returns the outcome of a future, and how long it took. Panics after 20 seconds.
pub(crate) async fn measured<T>(what: &str, done: impl Future<Output = T>) -> (T, Duration) {
    let started = Instant::now();
    let done = timeout(Duration::from_secs(20), done).await;
    let taken = started.elapsed();
    println!("{what}: {taken:?}");
    (done.unwrap_or_else(|_| panic!("{what} takes too long")), taken)
}
