//! Fair distribution of the concurrent calls to a service over customers.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use assay_auth::customer_of;
use assay_fair::{Share, Shares};
use assay_proto::{CustomerId, waits};
use assay_rpc::grpc::Channel;
use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::{sync::watch, time::Instant};
use tonic::{Code, Status, body::Body};
use tower::Service;

use crate::rendering::Processors;

/// Minimum duration of a failed call from which the service counts as failing: it has probably
/// waited for its database, and the next call would wait as well.
const LATE: Duration = Duration::from_secs(1);

/// A channel to a service, with a limited number of concurrent calls that is shared fairly between
/// customers.
///
/// A call holds its share from the end of its request until the start of its response, not while a
/// body arrives or a response is read. Methods that wait ([`assay_proto::waits`]) hold no share.
#[derive(Clone)]
pub(crate) struct FairChannel {
    channel: Channel,
    shares: Shares,
    /// Shares of the processors of this program. A response takes one for each of its messages.
    processors: Shares,
    /// Whether calls fail late. While they do, no call waits for a share.
    failing: Arc<watch::Sender<bool>>,
}

impl FairChannel {
    pub(crate) fn new(channel: Channel, concurrency: usize, processors: &Shares) -> Self {
        let failing = Arc::new(watch::Sender::new(false));
        let processors = processors.clone();
        Self { channel, shares: Shares::adaptive(concurrency), processors, failing }
    }

    /// Returns the shares, for calls that are gathered before they are sent.
    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// Waits for a share of a customer.
    async fn acquire(&self, customer: CustomerId) -> Result<Share, Status> {
        if let Ok(share) = self.shares.try_acquire(customer) {
            return Ok(share);
        }
        let mut failing = self.failing.subscribe();
        tokio::select! {
            biased;
            _ = failing.wait_for(|failing| *failing) => {
                Err(Status::unavailable("earlier calls have failed"))
            }
            share = self.shares.acquire(customer) => Ok(share?),
        }
    }

    /// Remembers whether the service has failed late.
    fn record<T>(&self, response: &Result<Response<T>, Status>, took: Duration) {
        let code = match response {
            Ok(response) => {
                Status::from_header_map(response.headers()).map_or(Code::Ok, |s| s.code())
            }
            Err(status) => status.code(),
        };
        let failing = matches!(code, Code::Unavailable | Code::DeadlineExceeded) && took > LATE;
        self.failing.send_if_modified(|before| std::mem::replace(before, failing) != failing);
    }
}

impl Service<Request<Body>> for FairChannel {
    type Response = <Channel as Service<Request<Body>>>::Response;
    type Error = Status;
    type Future = BoxFuture<'static, Result<Self::Response, Status>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Service::<Request<Body>>::poll_ready(&mut self.channel, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut this = self.clone();
        let customer = customer_of(request.extensions());
        let customer = customer.filter(|_| !waits(request.uri().path()));
        Box::pin(async move {
            let Some(customer) = customer else { return this.channel.call(request).await };
            let _share = this.acquire(customer).await?;
            let started = Instant::now();
            let response = this.channel.call(request).await;
            this.record(&response, started.elapsed());
            let mut response = response?;
            response.extensions_mut().insert(Processors { shares: this.processors, customer });
            Ok(response)
        })
    }
}
