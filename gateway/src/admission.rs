//! Customers take turns at each service, and at rendering what it answers.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use assay_auth::customer_of;
use assay_proto::{CustomerId, waits};
use assay_runtime::{Share, Shares, grpc::Channel};
use futures::future::BoxFuture;
use http::{Request, Response};
use tokio::{sync::watch, time::Instant};
use tonic::{Code, Status, body::Body};
use tower::Service;

use crate::turn::Turns;

/// A service that takes longer than this to be unavailable has waited for something, such as its
/// database. The next call would wait for it, too.
const LATE: Duration = Duration::from_secs(1);

/// A channel to a service, with a limited number of concurrent calls that is shared fairly between
/// customers.
///
/// A call holds its share from when its request is complete until its answer begins: not while a
/// body arrives or an answer is read. Methods that wait ([`assay_proto::waits`]) hold none.
#[derive(Clone)]
pub(crate) struct Admitted {
    channel: Channel,
    shares: Shares,
    /// Shares of this program's processors, of which each answer takes one for each of its messages.
    processors: Shares,
    /// Set while calls fail late. Then no call waits for its turn.
    fails: Arc<watch::Sender<bool>>,
}

impl Admitted {
    pub(crate) fn new(channel: Channel, at_once: usize, processors: &Shares) -> Self {
        let fails = Arc::new(watch::Sender::new(false));
        let processors = processors.clone();
        Self { channel, shares: Shares::adaptive(at_once), processors, fails }
    }

    /// Waits for the turn of a customer.
    async fn turn(&self, customer: CustomerId) -> Result<Share, Status> {
        if let Ok(share) = self.shares.try_acquire(customer) {
            return Ok(share);
        }
        let mut fails = self.fails.subscribe();
        tokio::select! {
            biased;
            _ = fails.wait_for(|fails| *fails) => {
                Err(Status::unavailable("the calls before this one failed"))
            }
            share = self.shares.acquire(customer) => Ok(share?),
        }
    }

    fn note<T>(&self, answer: &Result<Response<T>, Status>, took: Duration) {
        let code = match answer {
            Ok(answer) => Status::from_header_map(answer.headers()).map_or(Code::Ok, |s| s.code()),
            Err(status) => status.code(),
        };
        let fails = matches!(code, Code::Unavailable | Code::DeadlineExceeded) && took > LATE;
        self.fails.send_if_modified(|before| std::mem::replace(before, fails) != fails);
    }
}

impl Service<Request<Body>> for Admitted {
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
            let _share = this.turn(customer).await?;
            let began = Instant::now();
            let answer = this.channel.call(request).await;
            this.note(&answer, began.elapsed());
            let mut answer = answer?;
            answer.extensions_mut().insert(Turns { shares: this.processors, customer });
            Ok(answer)
        })
    }
}
