//! Discovery of the serving replicas behind a name.
//!
//! The name is resolved every second. There is one connection to each address, on which the program
//! reports whether it serves (`grpc.health.v1.Health/Watch`). Calls go only to programs that are
//! connected and serving, not to those that have died, hang, start or stop.

use std::{
    collections::{HashMap, HashSet},
    future::Future,
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use http::{Uri, uri::Authority};
use metrics::Gauge;
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::{interval, sleep, timeout},
};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};

use super::replica::{Replica, Target};

/// Interval in which a name is resolved.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum time to establish a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// First and longest backoff before reconnecting.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(400));

/// The known replicas behind a name.
#[derive(Default)]
pub(super) struct Replicas {
    pub(super) serving: Vec<Replica>,
    /// Number of addresses and names whose first attempt is not finished.
    pending: usize,
}

impl Replicas {
    /// Whether there is a serving replica, or all first attempts have finished.
    pub(super) fn is_settled(&self) -> bool {
        self.pending == 0 || !self.serving.is_empty()
    }
}

/// Follows the addresses of a name, and connects to each. Drops `first` after the first resolution.
pub(super) async fn follow<F: Future<Output = io::Result<Vec<SocketAddr>>> + Send>(
    target: Target,
    mut look_up: impl FnMut() -> F + Send,
    registry: Registry,
    first: Pending,
) {
    let mut first = Some(first);
    let mut tasks = JoinSet::new();
    let mut connected: HashMap<SocketAddr, AbortHandle> = HashMap::new();
    let mut ticks = interval(RESOLVE_INTERVAL);
    loop {
        ticks.tick().await;
        match look_up().await {
            Ok(addresses) => {
                let current: HashSet<SocketAddr> = addresses.into_iter().collect();
                for (_, gone) in connected.extract_if(|address, _| !current.contains(address)) {
                    gone.abort();
                }
                for address in current {
                    connected.entry(address).or_insert_with(|| {
                        let first = registry.pending();
                        tasks.spawn(keep_connected(
                            target.clone(),
                            address,
                            registry.clone(),
                            first,
                        ))
                    });
                }
            }
            // The known addresses stay in use.
            Err(error) => {
                tracing::debug!(name = %target.name, %error, "cannot resolve the name");
            }
        }
        first.take();
        while tasks.try_join_next().is_some() {}
    }
}

/// Connects to a program, and reconnects with a backoff. Drops `first` after the first attempt.
async fn keep_connected(target: Target, address: SocketAddr, registry: Registry, first: Pending) {
    let mut first = Some(first);
    let mut backoff = BACKOFF.0;
    loop {
        let ended = follow_health(&target, address, &registry, &mut first).await;
        backoff = if ended.is_ok() { BACKOFF.0 } else { (backoff * 2).min(BACKOFF.1) };
        if let Err(error) = ended {
            let error = format!("{error:#}");
            tracing::debug!(name = %target.name, %address, error, "cannot connect");
        }
        first.take();
        sleep(backoff).await;
    }
}

/// Connects to a program, and registers it for as long as it serves. Ends with the connection.
async fn follow_health(
    target: &Target,
    address: SocketAddr,
    registry: &Registry,
    first: &mut Option<Pending>,
) -> anyhow::Result<()> {
    let replica = timeout(CONNECT_TIMEOUT, Replica::connect(target, address)).await??;
    let origin = Uri::builder().scheme("http").authority(target.name.clone()).path_and_query("/");
    let mut health = HealthClient::with_origin(replica.clone(), origin.build()?);
    let mut statuses = health.watch(HealthCheckRequest::default()).await?.into_inner();
    let mut registration = None;
    loop {
        let Some(answer) = statuses.message().await? else { return Ok(()) };
        drop(registration.take());
        if answer.status() == ServingStatus::Serving {
            registration = Some(registry.register(replica.clone()));
        }
        first.take();
    }
}

/// Registry of the serving replicas, which channels watch.
#[derive(Clone)]
pub(super) struct Registry {
    replicas: Arc<watch::Sender<Replicas>>,
    number: Gauge,
}

impl Registry {
    pub(super) fn new(name: &Authority) -> Self {
        let number = metrics::gauge!("rpc_client_replicas", "server" => name.to_string());
        number.set(0.0);
        Self { replicas: Arc::default(), number }
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Replicas> {
        self.replicas.subscribe()
    }

    pub(super) fn pending(&self) -> Pending {
        self.replicas.send_modify(|replicas| replicas.pending += 1);
        Pending(self.clone())
    }

    fn register(&self, replica: Replica) -> Registration {
        let address = replica.address;
        self.change(|serving| serving.push(replica));
        Registration { registry: self.clone(), address }
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Replica>)) {
        self.replicas.send_modify(|replicas| {
            change(&mut replicas.serving);
            self.number.set(u32::try_from(replicas.serving.len()).unwrap_or(u32::MAX));
        });
    }
}

/// A first attempt to resolve a name or to connect, until it is dropped.
pub(super) struct Pending(Registry);

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.replicas.send_modify(|replicas| replicas.pending -= 1);
    }
}

/// The registration of a replica, until it is dropped.
struct Registration {
    registry: Registry,
    address: SocketAddr,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.change(|serving| serving.retain(|replica| replica.address != self.address));
    }
}
