//! The actor of events: the caller of the method that publishes them. It follows the call like its trace, so
//! that no function between the method and the event passes it on. Work that begins without a caller, and work
//! that is gathered from several calls, is of no caller: gathered changes carry their actors themselves.

use assay_proto::{Actor, ActorKind};
use tokio::task_local;

/// Name of the programs of Assay.
const ASSAY: &str = "Assay";

task_local! {
    static ACTOR: Actor;
}

/// Runs a call for an actor.
pub(crate) async fn acting<T>(actor: Actor, call: impl Future<Output = T>) -> T {
    ACTOR.scope(actor, call).await
}

/// Returns the caller of the current method, or else the actor that stands for the programs of Assay.
pub fn current() -> Actor {
    ACTOR.try_with(Clone::clone).unwrap_or_else(|_| program())
}

/// Returns the actor that stands for the programs of Assay.
pub fn program() -> Actor {
    let kind = ActorKind::Program.into();
    Actor { kind, name: ASSAY.to_owned(), ..Actor::default() }
}
