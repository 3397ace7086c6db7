//! Fair shares of the processors for customers whose long responses are rendered.

use std::{pin::pin, time::Duration};

use assay_fair::{Share, Shares};
use assay_proto::CustomerId;
use futures::{Stream, stream};
use tokio::{task::yield_now, time::timeout};
use tonic::{Response, Status, Streaming};

/// Maximum time for which a share is held while a service has not sent the next message.
const HOLD_TIME: Duration = Duration::from_millis(20);

/// The processors that render a response, and the customer that gets the shares of them. The
/// extensions of the response carry it.
#[derive(Clone)]
pub(crate) struct Processors {
    pub(crate) shares: Shares,
    pub(crate) customer: CustomerId,
}

impl Processors {
    async fn acquire(&self) -> Result<Share, Status> {
        Ok(self.shares.acquire(self.customer).await?)
    }
}

/// A message, or what it contains, and the share that is held until it is rendered.
pub(crate) type InTurn<T> = (T, Option<Share>);

/// Streams the messages of a response, each with a share of the processors.
///
/// Without shares, hundreds of lists of one customer that are ready to be rendered would delay
/// every request of other customers.
pub(crate) fn messages<T: Send + 'static>(
    response: Response<Streaming<T>>,
) -> impl Stream<Item = Result<InTurn<T>, Status>> + Send {
    let processors = response.extensions().get::<Processors>().cloned();
    stream::try_unfold(
        (processors, response.into_inner()),
        |(processors, mut messages)| async move {
            // Lets other tasks run between two messages, even if many have arrived.
            yield_now().await;
            let (message, share) = match &processors {
                Some(processors) => next_in_turn(&mut messages, processors).await?,
                None => (messages.message().await?, None),
            };
            Ok(message.map(|message| ((message, share), (processors, messages))))
        },
    )
}

/// Decodes the next message with a share, which is released while the service takes long to send
/// it.
async fn next_in_turn<T>(
    messages: &mut Streaming<T>,
    processors: &Processors,
) -> Result<(Option<T>, Option<Share>), Status> {
    let share = processors.acquire().await?;
    let mut message = pin!(messages.message());
    if let Ok(message) = timeout(HOLD_TIME, message.as_mut()).await {
        return Ok((message?, Some(share)));
    }
    drop(share);
    let message = message.await?;
    Ok((message, Some(processors.acquire().await?)))
}
