//! Customers take turns when long answers are rendered.

use std::{pin::pin, time::Duration};

use assay_proto::CustomerId;
use assay_runtime::{Share, Shares};
use futures::{Stream, stream};
use tokio::{task::yield_now, time::timeout};
use tonic::{Response, Status, Streaming};

/// Maximum time that a service is awaited during a turn.
const PATIENCE: Duration = Duration::from_millis(20);

/// The turns of the customer of an answer. They travel in the extensions of the answer.
#[derive(Clone)]
pub(crate) struct Turns {
    pub(crate) shares: Shares,
    pub(crate) customer: CustomerId,
}

impl Turns {
    async fn next(&self) -> Result<Share, Status> {
        Ok(self.shares.acquire(self.customer).await?)
    }
}

/// A part of an answer, which holds a share of the processors until it is rendered.
pub(crate) struct Part<T> {
    items: T,
    turn: Option<Share>,
}

impl<T> Part<T> {
    /// A part that is at hand.
    pub(crate) fn ready(items: T) -> Self {
        Self { items, turn: None }
    }

    /// Returns what it holds, and ends the turn.
    pub(crate) fn into_inner(self) -> T {
        self.items
    }

    pub(crate) fn map<U>(self, of: impl FnOnce(T) -> U) -> Part<U> {
        Part { items: of(self.items), turn: self.turn }
    }
}

/// The messages of an answer, each rendered when it is its customer's turn.
///
/// Without turns, hundreds of lists of one customer that are ready to be rendered would stand
/// before every step of another customer's request.
pub(crate) fn messages<T: Send + 'static>(
    answer: Response<Streaming<T>>,
) -> impl Stream<Item = Result<Part<T>, Status>> + Send {
    let turns = answer.extensions().get::<Turns>().cloned();
    stream::try_unfold((turns, answer.into_inner()), |(turns, mut messages)| async move {
        // Other tasks run between two messages, however many are there already.
        yield_now().await;
        let (message, turn) = match &turns {
            Some(turns) => in_turn(&mut messages, turns).await?,
            None => (messages.message().await?, None),
        };
        Ok(message.map(|items| (Part { items, turn }, (turns, messages))))
    })
}

/// Decodes a message during the turn, which is given up while a service takes long to send it.
async fn in_turn<T>(
    messages: &mut Streaming<T>,
    turns: &Turns,
) -> Result<(Option<T>, Option<Share>), Status> {
    let turn = turns.next().await?;
    let mut message = pin!(messages.message());
    if let Ok(message) = timeout(PATIENCE, message.as_mut()).await {
        return Ok((message?, Some(turn)));
    }
    drop(turn);
    let message = message.await?;
    Ok((message, Some(turns.next().await?)))
}
